package integration_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
)

// The calls of a check-out that most faults affect.
const (
	acquirePath = "/check-out-lock-storage"
	commitPath  = "/loan-storage/check-outs"
	settlePath  = "/settlement" // behind the path of a commit, whose faults it does not have
	factsPath   = "/loan-storage/check-out-facts"
)

// always is more calls than any test makes.
const always = 1 << 30

// link is an HTTP proxy between a circulation instance and its storage. It forwards all
// calls except those that a fault affects.
type link struct {
	url   string
	proxy *httputil.ReverseProxy
	// acquires answers a commit that takes the lock as a storage of an earlier build. So circulation
	// acquires each lock, as one of an earlier build does.
	acquires bool

	mu     sync.Mutex
	target *url.URL
	faults []*linkFault // in force
	unmet  []*linkFault // those of the whole test that no call has met
	seen   []string
}

// linkFault affects the calls of a method to a path and below. Both empty mean every call.
type linkFault struct {
	method, path string
	skip, times  int // how many calls are forwarded first, and how many are affected then
	handle       faultHandler
	optional     bool // the test may make no call that meets it
}

// faultHandler answers a call instead of storage, or does not answer it. The function forward
// makes the call and drops its answer, also after the caller has hung up.
type faultHandler func(w http.ResponseWriter, r *http.Request, forward func())

// startPairWithLinks starts a pair with a link between each circulation instance and its
// storage.
func startPairWithLinks(t *testing.T, o stack.Options, limit int) (*pair, []*link) {
	t.Helper()
	var links []*link
	o.Via = func(_ int, storage string) string {
		l := newLink(t, storage)
		links = append(links, l)
		return l.url
	}
	return startPair(t, o, limit), links
}

// startPairThatAcquires is startPairWithLinks with circulations that acquire each lock before the
// commit.
func startPairThatAcquires(t *testing.T, o stack.Options, limit int) (*pair, []*link) {
	t.Helper()
	p, links := startPairWithLinks(t, o, limit)
	for _, l := range links {
		l.acquires = true
	}
	return p, links
}

// newLink starts a link. The test fails if no call meets one of its faults that is not optional.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := &link{}
	l.setTarget(t, target)
	// Idle connections would delay the stop of storage.
	transport := &http.Transport{DisableKeepAlives: true}
	l.proxy = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			l.mu.Lock()
			defer l.mu.Unlock()
			r.SetURL(l.target)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(l)
	l.url = server.URL
	t.Cleanup(func() {
		server.Close()
		for _, f := range l.unmet {
			t.Errorf("no call met the fault of %s %s; the calls were %q", f.method, f.path, l.seen)
		}
	})
	return l
}

// setTarget makes the link forward to another storage.
func (l *link) setTarget(t *testing.T, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = u
}

// addFault makes the link fail as f says.
func (l *link) addFault(f linkFault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, &f)
	if f.times > 0 && !f.optional {
		l.unmet = append(l.unmet, &f)
	}
}

// removeFaults ends all faults. It does not change calls under way.
func (l *link) removeFaults() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// listCalls returns the calls so far, with {id} in place of ids. It leaves out reports of ended check-outs,
// which a timer sends.
func (l *link) listCalls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.seen), func(call string) bool {
		return call == "POST /check-out-history-storage/check-outs"
	})
}

// ServeHTTP implements http.Handler.
func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if l.acquires && r.URL.Path == commitPath && bytes.Contains(body, []byte(`"takeLock"`)) {
		w.Header().Set(fault.Header, string(fault.LockLost))
		http.Error(w, "there is no such lock", http.StatusConflict)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	handle := l.matchFault(r)
	if handle == nil {
		l.proxy.ServeHTTP(w, r)
		return
	}
	handle(w, r, func() {
		l.proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// matchFault records the call and returns the handler of its fault, nil without one.
func (l *link) matchFault(r *http.Request) faultHandler {
	l.mu.Lock()
	defer l.mu.Unlock()
	called := r.URL.Path
	base, settles := strings.CutSuffix(called, settlePath)
	if settles {
		called = path.Dir(base) + "/{id}" + settlePath
	}
	if uuid.Validate(path.Base(called)) == nil {
		called = path.Dir(called) + "/{id}"
	}
	l.seen = append(l.seen, r.Method+" "+called)
	for _, f := range l.faults {
		matches := strings.HasPrefix(r.URL.Path, f.path)
		if settles {
			matches = f.path == settlePath || f.path == ""
		}
		if (f.method != "" && f.method != r.Method) || !matches {
			continue
		}
		switch {
		case f.skip > 0:
			f.skip--
		case f.times > 0:
			f.times--
			l.unmet = slices.DeleteFunc(l.unmet, func(other *linkFault) bool { return other == f })
			return f.handle
		}
	}
	return nil
}

// loseRequest drops a call before storage gets it.
func loseRequest(http.ResponseWriter, *http.Request, func()) { panic(http.ErrAbortHandler) }

// loseAnswer drops the answer of a call that storage has processed.
func loseAnswer(_ http.ResponseWriter, _ *http.Request, forward func()) {
	forward()
	panic(http.ErrAbortHandler)
}

// hangCall does not answer until the caller gives up.
func hangCall(_ http.ResponseWriter, r *http.Request, _ func()) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// answerWith answers instead of storage, without a fault code, as a proxy does.
func answerWith(status int) faultHandler {
	return func(w http.ResponseWriter, _ *http.Request, _ func()) {
		http.Error(w, http.StatusText(status), status)
	}
}

// answerAsOlder answers as a storage of an earlier build, which has no such endpoint.
func answerAsOlder(w http.ResponseWriter, _ *http.Request, _ func()) {
	w.Header().Set(fault.Header, string(fault.NotFound))
	http.Error(w, http.StatusText(http.StatusNotFound), http.StatusNotFound)
}

// delayCall forwards the call after open is closed, when the caller has given up. underWay
// counts the calls that still wait.
func delayCall(open <-chan struct{}, underWay *atomic.Int32) faultHandler {
	return func(_ http.ResponseWriter, _ *http.Request, forward func()) {
		underWay.Add(1)
		defer underWay.Add(-1)
		<-open
		loseAnswer(nil, nil, forward)
	}
}
