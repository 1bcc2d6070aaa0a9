package sink_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
)

// mutable is a listener whose connections can fall silent, as if the host was lost. Later ones are to
// another host.
type mutable struct {
	net.Listener
	lost    atomic.Pointer[chan struct{}] // is closed when the connections since then fall silent
	dropped chan struct{}                 // one message for what came to a connection that is silent
}

func (l *mutable) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return mutableConn{conn, *l.lost.Load(), l.dropped}, err
}

// lose lets the connections so far fall silent.
func (l *mutable) lose() { close(*l.lost.Swap(new(make(chan struct{})))) }

type mutableConn struct {
	net.Conn
	lost    <-chan struct{}
	dropped chan<- struct{}
}

// Read loses what comes to a connection that is silent.
func (c mutableConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		select {
		case <-c.lost:
			if err == nil {
				select {
				case c.dropped <- struct{}{}:
				default:
				}
				continue
			}
		default:
		}
		return n, err
	}
}

// The reader's host is lost, and another one has its address.
func TestPoster_LeavesAConnectionThatIsSilent(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			hosts := &mutable{Listener: server.Listener, dropped: make(chan struct{}, 1)}
			hosts.lost.Store(new(make(chan struct{})))
			server.Listener, server.EnableHTTP2 = hosts, true
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			start(server)
			t.Cleanup(server.Close)
			to := openSink(t, sink.Settings{URL: server.URL, Environment: "e", Retention: time.Hour})
			sink.TrustServer(to, server)
			send := func(ctx context.Context) error {
				return to.Send(ctx, []events.Message{{Topic: "topic", Tenant: pgtest.Tenant(t), Value: []byte("{}")}})[0]
			}
			patient, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := send(patient); err != nil {
				t.Fatal(err)
			}
			hosts.lose()
			brief, leave := context.WithCancel(patient)
			go func() { // the end of its time comes after the host got something
				<-hosts.dropped
				leave()
			}()
			if err := send(brief); err == nil {
				t.Error("the lost host received an event")
			}
			if err := send(patient); err != nil {
				t.Errorf("the new host received nothing: %v", err)
			}
		})
	}
}
