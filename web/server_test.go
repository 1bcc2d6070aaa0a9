package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/web"
)

func TestService_AnswersWaitersAndLetsRunningRequestsFinish(t *testing.T) {
	t.Parallel()
	cfg := config.HTTP{RequestTimeout: 10 * time.Second, ShutdownTimeout: 20 * time.Second}
	started, waiters := make(chan struct{}), make(chan struct{})
	s := web.NewServer(cfg, slog.New(slog.DiscardHandler))
	s.BeforeClose = func() { close(waiters) }
	var worker aliveWorker
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-waiters
		if worker.ended.Load() {
			t.Error("the worker ended before the running request")
		}
		_, _ = io.WriteString(w, "finished")
	})
	service := listen(t, &worker, s)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(s.URL())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-started
	if !isReady(t, s) {
		t.Error("draining before the stop")
	}
	stop()
	if got := <-answer; got != "finished" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
	if isReady(t, s) {
		t.Error("ready after the stop")
	}
	if !worker.ended.Load() {
		t.Error("the worker still runs after the stop")
	}
}

// aliveWorker works until its context ends.
type aliveWorker struct{ ended atomic.Bool }

func (w *aliveWorker) Run(ctx context.Context) {
	<-ctx.Done()
	w.ended.Store(true)
}

// listen returns a service with a front for each listener, and one that only works.
func listen(t *testing.T, w *aliveWorker, listeners ...web.Listener) *web.Service {
	t.Helper()
	s := &web.Service{Panics: web.NewPanics(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))}
	for _, l := range listeners {
		s.Add(web.Front{Listener: l}, nil)
	}
	s.Add(web.Front{Workers: []web.Worker{{Name: "alive", Run: w.Run}}}, nil)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func isReady(t *testing.T, s *web.Server) bool {
	t.Helper()
	return s.Ready(func(context.Context) error { return nil })(t.Context()) == nil
}

// A client that sends its headers too slowly, or too many, is cut off or refused.
func TestServer_BoundsClients(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1:0", "text")
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context()) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Drain(context.Background()), <-ended); err != nil {
			t.Error(err)
		}
	})
	for name, tt := range map[string]struct{ sent, want string }{
		"slow": {sent: "GET /x HTTP/1.1\r\nHost: x\r\n", want: ""},
		"long": {
			sent: "GET /x HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			want: "431 Request Header Fields Too Large",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, tt.sent) // the server may answer before it has read all
			if err := conn.SetReadDeadline(time.Now().Add(12 * time.Second)); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(got), tt.want) {
				t.Errorf("got %q, %v, want %q and the end", got, err, tt.want)
			}
		})
	}
}

func TestService_StopsAllWhenAFrontFails(t *testing.T) {
	t.Parallel()
	s := web.NewServer(config.HTTP{ShutdownTimeout: time.Second}, slog.New(slog.DiscardHandler))
	var worker aliveWorker
	err := listen(t, &worker, broken{}, s).Run(t.Context())
	if !errors.Is(err, errBroken) || !worker.ended.Load() || isReady(t, s) {
		t.Errorf("got %v, worker ended %t, want %v and all stopped", err, worker.ended.Load(), errBroken)
	}
}

var errBroken = errors.New("broken")

// broken fails as soon as it serves.
type broken struct{}

func (broken) Listen(context.Context) error { return nil }
func (broken) URL() string                  { return "" }
func (broken) Serve(context.Context) error  { return errBroken }
func (broken) Drain(context.Context) error  { return nil }

// A delay before the end is waited for once, not for each address.
func TestService_ClosesAllAddressesAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	other := make(meeting)
	if err := listen(t, new(aliveWorker), other, other).Close(ctx); err != nil {
		t.Errorf("got %v, want that both end", err)
	}
}

// meeting ends when two of it end.
type meeting chan struct{}

func (meeting) Listen(context.Context) error { return nil }
func (meeting) URL() string                  { return "" }
func (meeting) Serve(context.Context) error  { return nil }
func (m meeting) Drain(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestServer_ReportsAnAddressInUse(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	first := web.NewServer(config.HTTP{}, log)
	if err := first.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(first) // the garbage collector closes a listener that nothing uses
	second := web.NewServer(config.HTTP{Port: port(t, first.URL())}, log)
	if second.Listen(t.Context()) == nil {
		t.Error("the port was opened twice")
	}
}

func port(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
