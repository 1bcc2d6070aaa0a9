package storageclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// faultyStorage answers "ok", except on the paths of its faults. It counts what its clients keep open.
type faultyStorage struct {
	*httptest.Server
	open atomic.Int32
}

// countedConn is a connection that counts its end.
type countedConn struct {
	*net.TCPConn
	end func()
}

func (c *countedConn) Close() error {
	c.end()
	return c.TCPConn.Close()
}

func newFaultyStorage(t *testing.T) *faultyStorage {
	t.Helper()
	s := &faultyStorage{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *faultyStorage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/lost":
		panic(http.ErrAbortHandler)
	case "/half":
		w.Header().Set("Content-Length", "100")
	case "/silent":
		<-r.Context().Done()
	case "/last":
		w.Header().Set("Connection", "close")
	case "/hint":
		w.WriteHeader(http.StatusEarlyHints)
	}
	_, _ = io.WriteString(w, "ok")
}

// clientOf returns a client with n connections, and these.
func (s *faultyStorage) clientOf(t *testing.T, n int) (*http.Client, *connections) {
	t.Helper()
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := newHTTPClient(address, n)
	t.Cleanup(client.CloseIdleConnections)
	p, _ := client.Transport.(*connections)
	dial := p.dial
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return nil, err
		}
		s.open.Add(1)
		return &countedConn{tcp, sync.OnceFunc(func() { s.open.Add(-1) })}, nil
	}
	return client, p
}

// post makes a call and reads its answer.
func post(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if strings.HasSuffix(address, "/unread") {
		return nil // the answer is not read
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != "ok" {
		err = errors.New("answered " + resp.Status + " " + string(body))
	}
	return err
}

func TestConnections_KeepNoPlaceAfterACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		wait time.Duration
		ok   bool
	}{
		"no connection":               {path: "nowhere"},
		"no answer":                   {path: "/lost"},
		"a part of the answer":        {path: "/half"},
		"an answer that is not read":  {path: "/unread", ok: true},
		"a caller that leaves":        {path: "/silent", wait: 50 * time.Millisecond},
		"an answer that is the last":  {path: "/last", ok: true},
		"an answer after a first one": {path: "/hint", ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyStorage(t)
			client, _ := s.clientOf(t, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			address := s.URL + tt.path
			if tt.path == "nowhere" {
				address = "http://127.0.0.1:1/"
			}
			for range 2 {
				called, leave := ctx, context.CancelFunc(func() {})
				if tt.wait > 0 {
					called, leave = context.WithTimeout(ctx, tt.wait)
				}
				err := post(called, client, address)
				leave()
				if (err == nil) != tt.ok || tt.wait > 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			}
			if err := post(ctx, client, s.URL); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n := s.open.Load(); n != 1 {
				t.Errorf("%d connections are open, want one", n)
			}
		})
	}
}

func TestConnections_ACallerInLineLeaves(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	client, p := s.clientOf(t, 1)
	p.places <- struct{}{}
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer leave()
	if err := post(ctx, client, s.URL); !errors.Is(err, context.DeadlineExceeded) || s.open.Load() != 0 {
		t.Errorf("got %v over %d connections, want the end of the wait", err, s.open.Load())
	}
}

// A POST is not sent twice, so it must not meet a dead connection.
func TestConnections_TakeNoneThatIsDead(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	client, _ := s.clientOf(t, 1)
	for range 2 {
		if err := post(t.Context(), client, s.URL); err != nil {
			t.Error(err)
		}
		s.CloseClientConnections()
	}
}

func TestConnections_CloseWhatIsIdleForLong(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	client, p := s.clientOf(t, 2)
	first, second := newIdle(t, p, s), newIdle(t, p, s)
	p.keep(first)
	p.keep(second)
	first.idleSince = first.idleSince.Add(-idleTimeout)
	if err := post(t.Context(), client, s.URL); err != nil || len(p.idle) != 1 || first.Close() == nil {
		t.Errorf("got %v, %d are idle, want the second alone", err, len(p.idle))
	}
	second.idleSince = second.idleSince.Add(-idleTimeout)
	if err := post(t.Context(), client, s.URL); err != nil || len(p.idle) != 1 || second.Close() == nil {
		t.Errorf("got %v, %d are idle, want a new one alone", err, len(p.idle))
	}
}

// The deadline of a caller that left stays on its connection.
func TestConnections_KeepNoneThatHasEnded(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	client, p := s.clientOf(t, 1)
	if err := post(t.Context(), client, s.URL+"/last"); err != nil || len(p.idle) != 0 {
		t.Errorf("the last answer: got %v and kept %d", err, len(p.idle))
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	if _, _ = io.ReadAll(resp.Body); len(p.idle) != 0 {
		t.Error("kept the connection of a caller that left")
	}
}

func newIdle(t *testing.T, p *connections, s *faultyStorage) *connection {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.open(req)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
