package staff_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/staff"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// requestTimeout ends a stream.
const requestTimeout = 30 * time.Second

// follower is a browser that follows a page. It lives in a bubble of synctest, so
// all that is sent until now has come whenever synctest.Wait returns.
type follower struct {
	leave context.CancelFunc

	mu     sync.Mutex
	header http.Header
	status int
	body   strings.Builder
	read   int // bytes of body that were returned
	flown  int // bytes of body that were flushed
	done   bool
}

func (f *follower) Header() http.Header { return f.header }

func (f *follower) WriteHeader(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

func (f *follower) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.body.Write(b)
}

func (f *follower) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flown = f.body.Len()
}

// news returns what was flushed since it was called last.
func (f *follower) news() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.body.String()[f.read:f.flown]
	f.read = f.flown
	return got
}

// after lets time pass, and returns what came meanwhile.
func (f *follower) after(d time.Duration) string {
	f.news()
	<-time.After(d)
	return f.news()
}

// ended reports whether the answer is complete, and its status.
func (f *follower) ended() (bool, int) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done, f.status
}

type livePages struct {
	stop    func()
	handler http.Handler
}

func newLivePages(t *testing.T, o staff.Admin) livePages {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	guard := auth.NewGuard(auth.Settings{Auth: auth.None}, nil, log)
	front, err := staff.New(staff.Options{Admin: o, Guard: guard, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return livePages{front.BeforeClose, web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: requestTimeout, BodyLimit: 1000,
		Ready: func(context.Context) error { return nil },
	}, front.Routes)}
}

func (p livePages) follow(t *testing.T, path string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	f := &follower{leave: leave, header: http.Header{}}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Host = "localhost"
	go func() {
		p.handler.ServeHTTP(f, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done = true
	}()
	synctest.Wait()
	return f
}

func TestStream_SendsTheListAtOnceAndThenChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &backend{locks: []schemas.CheckoutLock{held()}}
		f := newLivePages(t, d).follow(t, "/staff/diku/locks/live?holder=circulation-1")
		first := f.news()
		h := f.header
		if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" ||
			h.Get("X-Accel-Buffering") != "no" {
			t.Errorf("got the headers %v", h)
		}
		if !strings.HasPrefix(first, "retry: 1000\n\ndata: ") ||
			!strings.Contains(first, `data:   <tr id="lock-`+heldID+`">`) || !strings.HasSuffix(first, "\n\n") {
			t.Errorf("got at once\n%s", first)
		}
		got := f.after(3 * time.Second)
		d.change(func() {
			if d.asked.Holder != "circulation-1" {
				t.Errorf("asked for %+v", d.asked)
			}
			if got != "" || d.lists != 4 {
				t.Errorf("got %q after %d lists, want nothing new after 4", got, d.lists)
			}
			d.locks = nil
		})
		got = f.after(time.Second)
		if strings.Count(got, "\n\n") != 1 || strings.Contains(got, heldID) ||
			!strings.Contains(got, `data-live="table" data-shell hidden>`) {
			t.Errorf("got, when the lock was gone,\n%s", got)
		}
		for line := range strings.Lines(strings.TrimSuffix(got, "\n")) {
			if !strings.HasPrefix(line, "data: ") {
				t.Errorf("the line %q does not belong to the event", line)
			}
		}
		f.leave()
		if done, _ := f.ended(); !done {
			t.Error("the stream goes on without anybody who follows")
		}
	})
}

func TestStream_SendsCommentsAndEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &backend{}
		f := newLivePages(t, d).follow(t, "/staff/diku/locks/live")
		if got := f.after(14500 * time.Millisecond); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
		if got, want := f.after(time.Second), ": nothing new\n\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		f.after(requestTimeout - 15600*time.Millisecond)
		if done, _ := f.ended(); done {
			t.Error("ended before its time")
		}
		f.after(200 * time.Millisecond)
		if done, status := f.ended(); !done || status != http.StatusOK {
			t.Errorf("done is %t, with status %d", done, status)
		}
	})
}

func TestStream_EndsWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := newLivePages(t, &backend{})
		f := pages.follow(t, "/staff/diku/locks/live")
		pages.stop()
		pages.stop()
		if done, _ := f.ended(); !done {
			t.Error("the stream goes on")
		}
		if done, _ := pages.follow(t, "/staff/diku/locks/live").ended(); !done {
			t.Error("a new stream goes on")
		}
	})
}

func TestStream_ReportsAFailureOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &backend{locks: []schemas.CheckoutLock{held()}}
		f := newLivePages(t, d).follow(t, "/staff/diku/locks/live")
		d.change(func() { d.err = fault.Wrap(errors.New("SELECT secret"), fault.Unavailable, "down") })
		got := f.after(3 * time.Second)
		if strings.Count(got, "data: ") != 1 || !strings.Contains(got, `data-live="trouble"`) ||
			!strings.Contains(got, "tries again by itself") || strings.Contains(got, "secret") {
			t.Errorf("got %q", got)
		}
		d.change(func() { d.err = nil })
		if got := f.after(time.Second); !strings.Contains(got, heldID) ||
			!strings.Contains(got, `data-live="trouble"></div>`) {
			t.Errorf("got %q, want the list again", got)
		}
		f.leave()
	})
}

func TestStream_WaitsForStorageToFindThePatron(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &backend{locks: []schemas.CheckoutLock{held()}, lost: fault.New(fault.Unavailable, "down")}
		f := newLivePages(t, d).follow(t, "/staff/diku/locks/live?patron=ann%3C1%3E")
		if got := f.news(); !strings.Contains(got, "tries again by itself") || strings.Contains(got, heldID) {
			t.Errorf("got %q, want the trouble alone", got)
		}
		d.change(func() { d.lost = nil })
		got, before := f.after(time.Second), 0
		d.change(func() {
			if before = d.searches; !strings.Contains(got, heldID) || d.asked.UserID != annID {
				t.Errorf("got %q, asked for %+v", got, d.asked)
			}
		})
		f.after(5 * time.Second)
		d.change(func() {
			if d.searches != before {
				t.Errorf("the patron was looked for %d times more", d.searches-before)
			}
		})
		f.leave()
	})
}

func TestStream_RefusesAPageOfAnotherSite(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/staff/diku/locks/live", nil)
	r.Host = "localhost"
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	newLivePages(t, &backend{}).handler.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("got %d %s, want 403", w.Code, w.Body)
	}
}

func TestStream_IsLimitedInNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := newLivePages(t, &backend{})
		var all []*follower
		for range 32 {
			all = append(all, pages.follow(t, "/staff/diku/locks/live"))
		}
		f := pages.follow(t, "/staff/diku/contention/live")
		if done, status := f.ended(); !done || status != http.StatusTooManyRequests ||
			!strings.Contains(f.body.String(), "Too many pages") {
			t.Errorf("got %d %q, want %d", status, f.body.String(), http.StatusTooManyRequests)
		}
		all[7].leave()
		synctest.Wait()
		if done, status := pages.follow(t, "/staff/diku/contention/live").ended(); done || status != http.StatusOK {
			t.Errorf("got %d, want a stream in the free place", status)
		}
		pages.stop()
	})
}

func TestStream_EscapesLineBreaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := held()
		l.Holder = "a\r\rdata: forged\r\n\r\nevent: x\n\nid: 7"
		pages := newLivePages(t, &backend{locks: []schemas.CheckoutLock{l}})
		f := pages.follow(t, "/staff/diku/locks/live")
		pages.stop()
		got := strings.TrimSuffix(strings.TrimPrefix(f.news(), "retry: 1000\n\n"), "\n\n")
		if strings.Contains(got, "\r") {
			t.Errorf("a CR came through: %q", got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if !strings.HasPrefix(line, "data: ") {
				t.Errorf("the line %q does not belong to the event", line)
			}
		}
	})
}
