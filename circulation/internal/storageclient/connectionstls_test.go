package storageclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"
	"time"
)

func TestConnections_OverTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(&faultyStorage{})
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newConnections(address, 1)
	t.Cleanup(p.Close)
	if err := post(t.Context(), p, s.URL); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	made := 0
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		made++
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		return (&tls.Dialer{Config: &tls.Config{RootCAs: pool}}).DialContext(ctx, network, address)
	}
	for range 3 {
		if err := post(t.Context(), p, s.URL); err != nil {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d connections, want one", made)
	}
	s.CloseClientConnections()
	if err := post(t.Context(), p, s.URL); err != nil || made != 2 {
		t.Errorf("after a dead connection: got %v over connection %d, want the second", err, made)
	}
}

// One record of TLS may have more than the answer.
func TestConnections_OverTLSTakeNoneWithAnotherAnswer(t *testing.T) {
	t.Parallel()
	s := &faultyStorage{}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{DynamicRecordSizingDisabled: true}
	s.StartTLS()
	t.Cleanup(s.Close)
	p := s.connect(t, 1)
	p.dial = (&tls.Dialer{Config: s.Client().Transport.(*http.Transport).TLSClientConfig}).DialContext
	for range 2 {
		if err := post(t.Context(), p, s.URL+"/full"); err != nil {
			t.Error(err)
		}
	}
}

// The server sends tickets for later sessions after the handshake. They come before the first call.
func TestConnections_OverTLSWithTickets(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(&faultyStorage{})
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} // else the tickets are a part of the handshake
	s.StartTLS()
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newConnections(address, 1)
	t.Cleanup(p.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ClientSessionCache: tls.NewLRUClientSessionCache(1)}}
	made := 0
	p.dial = func(_ context.Context, network, address string) (net.Conn, error) {
		made++
		conn, err := dialer.DialContext(ctx, network, address)
		for err == nil && (&connection{Conn: conn}).isAlive() { // until the tickets are there
			err = ctx.Err()
			runtime.Gosched()
		}
		return conn, err
	}
	for range 2 {
		if err := post(ctx, p, s.URL); err != nil || made != 1 {
			t.Fatalf("got %v over connection %d, want the first", err, made)
		}
	}
}
