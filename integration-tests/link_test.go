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
)

// The calls of a check-out that faults are about.
const (
	acquirePath = "/check-out-lock-storage"
	commitPath  = "/loan-storage/check-outs"
)

// always is more often than any test calls.
const always = 1 << 30

// link is what lies between a circulation instance and its storage. It passes
// everything on until a test makes it fail.
type link struct {
	url   string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	target *url.URL
	faults []*linkFault
	seen   []string
}

// linkFault befalls the calls of one method to a path or below it, but for the
// first few; both empty mean every call.
type linkFault struct {
	method, path string
	skip, times  int // how many calls pass before, and how many it befalls
	handle       faultHandler
}

// faultHandler answers a call in the place of storage, or not at all. pass makes the
// call whatever has become of the caller, who hears nothing of it.
type faultHandler func(w http.ResponseWriter, r *http.Request, pass func())

// startPairWithLinks is start with a link before each circulation instance.
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

func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := &link{}
	l.setTarget(t, target)
	// Connections kept for later would hold up the stop of storage.
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
	t.Cleanup(server.Close)
	return l
}

// setTarget leads the link to another storage.
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

// addFault makes the link fail.
func (l *link) addFault(f linkFault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, &f)
}

// removeFaults ends all faults, but not what has befallen a call already.
func (l *link) removeFaults() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// listCalls are the calls that came, ids left out.
func (l *link) listCalls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// ServeHTTP implements http.Handler.
func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	happens := l.matchFault(r)
	if happens == nil {
		l.proxy.ServeHTTP(w, r)
		return
	}
	happens(w, r, func() {
		l.proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// matchFault notes the call and returns what befalls it, nil for nothing.
func (l *link) matchFault(r *http.Request) faultHandler {
	l.mu.Lock()
	defer l.mu.Unlock()
	called := r.URL.Path
	if uuid.Validate(path.Base(called)) == nil {
		called = path.Dir(called) + "/{id}"
	}
	l.seen = append(l.seen, r.Method+" "+called)
	for _, f := range l.faults {
		if (f.method != "" && f.method != r.Method) || !strings.HasPrefix(r.URL.Path, f.path) {
			continue
		}
		switch {
		case f.skip > 0:
			f.skip--
		case f.times > 0:
			f.times--
			return f.handle
		}
	}
	return nil
}

// loseRequest: the call never gets there.
func loseRequest(http.ResponseWriter, *http.Request, func()) { panic(http.ErrAbortHandler) }

// loseAnswer: storage does what it was asked, and nobody hears of it.
func loseAnswer(_ http.ResponseWriter, _ *http.Request, pass func()) {
	pass()
	panic(http.ErrAbortHandler)
}

// hang: nothing comes back until the caller gives up.
func hangCall(_ http.ResponseWriter, r *http.Request, _ func()) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// answer: something else than storage answers, which knows no fault codes.
func answerWith(status int) faultHandler {
	return func(w http.ResponseWriter, _ *http.Request, _ func()) {
		http.Error(w, http.StatusText(status), status)
	}
}

// holdUp: the call gets there once open is closed, long after the caller gave up;
// underWay counts those that did not yet.
func delayCall(open <-chan struct{}, underWay *atomic.Int32) faultHandler {
	return func(_ http.ResponseWriter, _ *http.Request, pass func()) {
		underWay.Add(1)
		defer underWay.Add(-1)
		<-open
		loseAnswer(nil, nil, pass)
	}
}
