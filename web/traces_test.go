package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"checkoutlock/config"
	"checkoutlock/web"
)

// A report a second would fail while the collector is away.
//
//nolint:paralleltest // the handler of errors is the process's
func TestService_WarnsOfLostTracesSeldom(t *testing.T) {
	reports := make(chan struct{}, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		reports <- struct{}{}
	}))
	defer collector.Close()
	var lines bytes.Buffer
	s := newService()
	s.Options.Log = slog.New(slog.NewTextHandler(&lines, nil))
	s.Traces = config.Traces{Endpoint: collector.URL, Ratio: 1}
	s.Add(web.Front{Name: "endpoints", Routes: answerOf("/one")}, nil)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for range 3 {
		get(t, s.URL("endpoints")+"/one")
		select {
		case <-reports:
		case <-time.After(time.Minute):
			t.Fatal("no spans are sent")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(lines.String(), "traces are not sent"); n != 1 {
		t.Errorf("got %d lines in a minute, want one:\n%s", n, &lines)
	}
}
