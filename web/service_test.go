package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/web"
)

// newService returns a service of HTTP at a free port, without fronts.
func newService() *web.Service {
	log, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	cfg := config.HTTP{Addr: "127.0.0.1", RequestTimeout: time.Minute, ShutdownTimeout: 10 * time.Second}
	return &web.Service{
		HTTP: cfg, Panics: web.NewPanics(registry, log),
		Options: web.Options{
			Log: log, Registry: registry, RequestTimeout: cfg.RequestTimeout, BodyLimit: 1 << 10,
			Ready: func(context.Context) error { return nil },
		},
	}
}

// newServer returns a server at the address, which answers with a text.
func newServer(t *testing.T, addr, text string) *web.Server {
	t.Helper()
	cfg := config.HTTP{RequestTimeout: time.Minute, ShutdownTimeout: 10 * time.Second}
	s, err := web.NewServerAt("EXAMPLE_ADDR", addr, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	return s
}

// answerOf is an endpoint with a text.
func answerOf(path string) []web.Route {
	return []web.Route{{
		Method: http.MethodGet, Path: path, NoTenant: true,
		Endpoint: web.JSON(http.StatusOK, web.FromContext(func(context.Context) (string, error) { return path, nil })),
	}}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestService_ServesTheFrontsOfItsList(t *testing.T) {
	t.Parallel()
	s := newService()
	closed, worked := make(chan struct{}), make(chan struct{})
	s.Add(web.Front{Name: "endpoints", Routes: answerOf("/one")}, nil)
	s.Add(web.Front{Name: "pages", Routes: answerOf("/two"), BeforeClose: func() { close(closed) }}, nil)
	s.Add(web.Front{Name: "other", Listener: newServer(t, "127.0.0.1:0", "three"), Workers: []web.Worker{
		{Name: "worker", Run: func(context.Context) { close(worked) }},
	}}, nil)
	s.Add(web.Front{}, nil)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if s.URL("pages") != s.URL("endpoints") || s.URL("other") == s.URL("endpoints") || s.URL("off") != "" {
		t.Errorf("the addresses are %s, %s, %s and %s", s.URL("endpoints"), s.URL("pages"), s.URL("other"), s.URL("off"))
	}
	for _, tt := range []struct{ url, want string }{
		{s.URL("endpoints") + "/one", `"/one"`},
		{s.URL("pages") + "/two", `"/two"`},
		{s.URL("pages") + "/admin/health/ready", "ready"},
		{s.URL("other"), "three"},
	} {
		if got := get(t, tt.url); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.url, got, tt.want)
		}
	}
	<-worked
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-closed
}

func TestService_ReportsAllFrontsThatCannotServe(t *testing.T) {
	t.Parallel()
	s := newService()
	errFirst, errSecond := errors.New("no key"), errors.New("no certificate")
	s.Add(web.Front{}, errFirst)
	s.Add(web.Front{Name: "endpoints", Routes: answerOf("/one")}, nil)
	s.Add(web.Front{}, errSecond)
	err := s.Listen(t.Context())
	if !errors.Is(err, errFirst) || !errors.Is(err, errSecond) || s.URL("endpoints") != "" {
		t.Errorf("got %v at %s, want both errors and no address", err, s.URL("endpoints"))
	}
}

func TestService_ClosesAllAfterATakenAddress(t *testing.T) {
	t.Parallel()
	taken := newServer(t, "127.0.0.1:0", "")
	if err := taken.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(taken) // the garbage collector closes a listener that nothing uses
	s := newService()
	s.HTTP.DrainDelay = 10 * time.Second // for requests, of which there are none
	s.Add(web.Front{Name: "endpoints", Routes: answerOf("/one")}, nil)
	began := time.Now()
	s.Add(web.Front{Listener: newServer(t, strings.TrimPrefix(taken.URL(), "http://"), "")}, nil)
	if err := s.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "EXAMPLE_ADDR") {
		t.Errorf("got %v, want it to name EXAMPLE_ADDR", err)
	}
	if took := time.Since(began); took >= s.HTTP.DrainDelay {
		t.Errorf("the error came after %s", took)
	}
	again := newServer(t, strings.TrimPrefix(s.URL("endpoints"), "http://"), "")
	if err := again.Listen(t.Context()); err != nil {
		t.Errorf("the first address is still open: %v", err)
	}
}
