package mutexapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/mutexapi"
	"checkoutlock/schemas/fault"
)

func TestOutage(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for _, tt := range []struct {
		err    error
		status int
	}{
		{fault.New(fault.Unavailable, "gone"), 503},
		{fault.New(fault.Timeout, "slow"), 503},
		{context.DeadlineExceeded, 503},
		{errors.New("secret"), 500},
		{fault.New(fault.Internal, "secret"), 500},
	} {
		s.store.Fail(tt.err)
		for _, method := range []string{"POST", "DELETE", "GET"} {
			s.want(t, method, "/api/lock/u/", "1", tt.status, `{"message":`)
			if _, body := s.send(t, method, "/api/lock/u/", "1"); strings.Contains(body, "secret") {
				t.Errorf("the answer shows the cause: %s", body)
			}
		}
	}
	s.store.Fail(nil)
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
}

// slowStore lets a test act before a release begins.
type slowStore struct {
	*enginetest.Store
	begun, proceed, done chan struct{}
}

func (s *slowStore) Release(ctx context.Context, key engine.Key, owner string) (engine.Result, error) {
	defer close(s.done)
	close(s.begun)
	<-s.proceed
	return s.Store.Release(ctx, key, owner)
}

func TestDelete_GoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	slow := &slowStore{enginetest.NewStore(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	left := make(chan struct{}) // the server knows that the client has left
	s := startOver(t, slow.Store, slow, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				context.AfterFunc(r.Context(), func() { close(left) })
			}
			h.ServeHTTP(w, r)
		})
	})
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.URL()+"/api/lock/u/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User-Id", "1")
	go func() {
		if resp, err := s.client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-slow.begun
	cancel()
	<-left
	close(slow.proceed)
	<-slow.done
	s.want(t, "GET", "/api/lock/u/", "1", 404, "")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(rec,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	const want = `mutex_http_requests_total{code="",method="POST",route="/api/lock/:uid/",status="200"} 1`
	if !strings.Contains(rec.Body.String(), want) {
		t.Errorf("the metrics lack %s:\n%s", want, rec.Body)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*mutexapi.Settings)
		want   string
	}{
		{name: "complete", change: func(*mutexapi.Settings) {}, want: ""},
		{name: "off", change: func(s *mutexapi.Settings) { *s = mutexapi.Settings{} }, want: ""},
		{
			name: "no port", change: func(s *mutexapi.Settings) { s.Addr = "localhost" },
			want: `MUTEX_ADDR is "localhost", allowed: host:port`,
		},
		{name: "a name as port", change: func(s *mutexapi.Settings) { s.Addr = "localhost:http" }, want: "MUTEX_ADDR"},
		{
			name: "a short TTL", change: func(s *mutexapi.Settings) { s.TTL = time.Millisecond },
			want: "MUTEX_TTL is 1ms, allowed: 1s to 24h0m0s",
		},
		{
			name: "a bad header", change: func(s *mutexapi.Settings) { s.UserHeader = "X User" },
			want: `MUTEX_USER_HEADER is "X User"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			settings := mutexapi.Settings{Addr: "127.0.0.1:9003", TTL: time.Minute, UserHeader: "X-User-Id"}
			tt.change(&settings)
			err := settings.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
