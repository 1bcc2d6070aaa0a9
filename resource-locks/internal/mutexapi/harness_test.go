package mutexapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/mutexapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

type quiet struct{}

func (quiet) Observe(engine.Event) {}

// harness is a front over a store in memory.
type harness struct {
	*web.Server
	store    *enginetest.Store
	registry *prometheus.Registry
	client   *http.Client
}

// startHarness serves until the test ends.
func startHarness(t *testing.T) *harness {
	t.Helper()
	store := enginetest.NewStore()
	return startOver(t, store, store, func(h http.Handler) http.Handler { return h })
}

// startOver is startServer with locks in front of the store, and a wrapped handler.
func startOver(t *testing.T, store *enginetest.Store, locks engine.LockStore,
	wrap func(http.Handler) http.Handler,
) *harness {
	t.Helper()
	transport := &http.Transport{}
	s := &harness{store: store, registry: prometheus.NewRegistry(), client: &http.Client{Transport: transport}}
	front, err := mutexapi.New(mutexapi.Options{
		Settings: mutexapi.Settings{Addr: "127.0.0.1:0", TTL: time.Minute, UserHeader: "X-User-Id"},
		Locks:    engine.NewLocks(locks, quiet{}), Guard: auth.NewGuard(auth.Settings{Auth: auth.Gateway}, nil, nil),
		Log: config.Log{}.New(io.Discard, ""), Registry: s.registry,
		Ready: func(context.Context) error { return nil }, HTTP: config.HTTP{ShutdownTimeout: 5 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = front.Listener.(*web.Server)
	s.Handler = wrap(s.Handler)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections() // the stop waits for those without a request
		if err := errors.Join(s.Drain(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send returns status and body of a request by user; an empty user sends no header.
func (s *harness) send(t *testing.T, method, path, user string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("X-User-Id", user)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func (s *harness) want(t *testing.T, method, path, user string, status int, part string) {
	t.Helper()
	got, body := s.send(t, method, path, user)
	if got != status || !strings.Contains(body, part) {
		t.Errorf("%s %s by %q: got %d %s, want %d with %s", method, path, user, got, body, status, part)
	}
	if status >= http.StatusBadRequest && method != http.MethodHead && !json.Valid([]byte(body)) {
		t.Errorf("%s %s by %q: the body is no JSON: %s", method, path, user, body)
	}
}
