package sink_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
)

// A reader that accepts connections and never answers TLS holds none of them for long. Each turn opens new
// ones.
func TestPoster_EndsHandshakesThatHang(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	accepted, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		close(accepted)
		if err == nil {
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = io.Copy(io.Discard, conn)
		}
		ended <- err
	}()
	to := openSink(t, sink.Settings{URL: "https://" + ln.Addr().String(), Environment: "e", Retention: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-accepted
		cancel()
	}()
	errs := to.Send(ctx, []events.Message{{Topic: "topic", Tenant: pgtest.Tenant(t), Value: []byte("{}")}})
	if errs[0] == nil {
		t.Error("the event was received")
	}
	if err := <-ended; err != nil {
		t.Errorf("the connection stays open: %v", err)
	}
}
