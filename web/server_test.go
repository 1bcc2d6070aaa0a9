package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"checkoutlock/config"
	"checkoutlock/web"
)

func TestAStopAnswersWaitersAndLetsRunningRequestsFinish(t *testing.T) {
	t.Parallel()
	cfg := config.HTTP{RequestTimeout: 10 * time.Second, ShutdownTimeout: 20 * time.Second}
	s, err := web.Listen(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	started, waiters := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-waiters
		_, _ = io.WriteString(w, "finished")
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, h, func() { close(waiters) }) }()
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
	if s.Draining() != nil {
		t.Error("draining before the stop")
	}
	stop()
	if got := <-answer; got != "finished" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
	if s.Draining() == nil {
		t.Error("ready after the stop")
	}
}

func TestAPortThatIsTakenIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	first, err := web.Listen(t.Context(), config.HTTP{}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cfg := config.HTTP{Port: port(t, first.URL())}
	if second, err := web.Listen(t.Context(), cfg, log); err == nil {
		second.Close()
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
