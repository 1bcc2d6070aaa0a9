package browser

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

var chromium Chromium

func TestMain(m *testing.M) {
	code := m.Run()
	if err := chromium.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// servePages serves pages by path and content of their main element. It returns the URL.
func servePages(t testing.TB, pages map[string]string) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, main := range pages {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writePage(w, main) })
	}
	return startServer(t, mux)
}

func startServer(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func writePage(w io.Writer, main string) {
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>A test's page</title>
<link rel="icon" href="data:,"><main><h1>A test's page</h1>%s</main></html>`, main)
}

// recorder records the failures of an attempt. Clean-ups run at the end of the attempt.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	said     strings.Builder
	failed   bool
	cleanups []func()
}

func (r *recorder) note(failed bool, s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.said.WriteString(s + "\n")
}

func (r *recorder) Helper()                      {}
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(f string, args ...any)   { r.note(false, fmt.Sprintf(f, args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(true, fmt.Sprintf(f, args...)) }
func (r *recorder) Fatalf(f string, args ...any) { r.end(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.end(fmt.Sprint(args...)) }

func (r *recorder) end(s string) {
	r.note(true, s)
	panic(r)
}

// runAttempt runs f with a recorder, and returns whether f failed and all messages.
func runAttempt(t *testing.T, f func(t testing.TB)) (failed bool, said string) {
	t.Helper()
	r := &recorder{TB: t}
	recovered := func(f func()) {
		defer func() {
			if v := recover(); v != nil && v != any(r) {
				panic(v)
			}
		}()
		f()
	}
	recovered(func() { f(r) })
	for _, clean := range r.cleanups {
		recovered(clean)
	}
	return r.failed, r.said.String()
}

// expectFailure fails the test unless f fails with messages that contain all these texts.
func expectFailure(t *testing.T, f func(t testing.TB), says ...string) {
	t.Helper()
	failed, said := runAttempt(t, f)
	if !failed {
		t.Fatalf("got no failure, want one with %q; the messages are %q", says, said)
	}
	for _, want := range says {
		if !strings.Contains(said, want) {
			t.Errorf("got the failure %q, want %q in it", said, want)
		}
	}
}
