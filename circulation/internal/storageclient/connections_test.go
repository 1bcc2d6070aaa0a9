package storageclient

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/jackc/puddle/v2"
)

// faultyStorage answers "ok", except on the paths of its faults. It counts what its clients keep open.
type faultyStorage struct {
	*httptest.Server
	open   atomic.Int32
	silent atomic.Int32 // calls that get no answer
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
		s.silent.Add(1)
		<-r.Context().Done()
	case "/last":
		w.Header().Set("Connection", "close")
	case "/hint":
		w.WriteHeader(http.StatusEarlyHints)
	case "/more":
		answerTwice(w, "")
		return
	case "/full": // the first answer fills the client's buffer
		const others = len("HTTP/1.1 200 OK\r\nX-Long: \r\nContent-Length: 2\r\n\r\nok")
		answerTwice(w, "X-Long: "+strings.Repeat("9", 4096-others)+"\r\n")
		return
	case "/headers":
		w.Header().Set("X-Long", strings.Repeat("9", 2*maxHeaders))
	case "/hints":
		for range maxHeaders / 16 {
			w.WriteHeader(http.StatusEarlyHints)
		}
	}
	_, _ = io.WriteString(w, "ok")
}

// answerTwice sends two answers at once, the first with a header, and waits for the end of the connection.
func answerTwice(w http.ResponseWriter, header string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	const status, length = "HTTP/1.1 200 OK\r\n", "Content-Length: "
	_, _ = io.WriteString(conn, status+header+length+"2\r\n\r\nok"+status+length+"5\r\n\r\nwrong")
	_, _ = io.Copy(io.Discard, conn)
}

// connect returns n connections to the server.
func (s *faultyStorage) connect(t *testing.T, n int) *connections {
	t.Helper()
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newConnections(address, n)
	t.Cleanup(p.Close)
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
	return p
}

// post makes a call and reads its answer.
func post(ctx context.Context, p *connections, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return err
	}
	answer, err := p.exchange(req)
	if err == nil && string(answer.body) != "ok" {
		err = fmt.Errorf("answered %d %s", answer.status, answer.body)
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
		"no connection":                {path: ""},
		"no answer":                    {path: "/lost"},
		"a part of the answer":         {path: "/half"},
		"a caller that leaves":         {path: "/silent", wait: 50 * time.Millisecond},
		"headers without an end":       {path: "/headers"},
		"first answers without an end": {path: "/hints"},
		"an answer that is the last":   {path: "/last", ok: true},
		"an answer after a first one":  {path: "/hint", ok: true},
		"an answer before another":     {path: "/more", ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyStorage(t)
			p := s.connect(t, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dial := p.dial
			if tt.path == "" {
				p.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }
			}
			for range 2 {
				called, leave := ctx, context.CancelFunc(func() {})
				if tt.wait > 0 {
					called, leave = context.WithTimeout(ctx, tt.wait)
				}
				err := post(called, p, s.URL+tt.path)
				leave()
				if (tt.path == "/last" || tt.path == "/more") && p.Stat().IdleResources() != 0 {
					t.Error("a connection that is no longer of use was kept")
				}
				if (err == nil) != tt.ok || tt.wait > 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			}
			p.dial = dial
			if err := post(ctx, p, s.URL); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n := s.open.Load(); n != 1 {
				t.Errorf("%d connections are open, want one", n)
			}
		})
	}
}

func TestConnections_DialTheAddressOfTheURL(t *testing.T) {
	t.Parallel()
	for storage, want := range map[string]string{
		"http://storage": "storage:http", "http://storage:": "storage:http", "https://storage/okapi": "storage:https",
		"http://storage:8081": "storage:8081", "https://[::1]": "[::1]:https", "http://[::1]:8081": "[::1]:8081",
	} {
		u, err := url.Parse(storage)
		if err != nil {
			t.Fatal(err)
		}
		p, got := newConnections(u, 1), ""
		p.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			got = address
			return nil, errors.New("no route")
		}
		if err := post(t.Context(), p, storage); err == nil || got != want {
			t.Errorf("%s: got %v for %q, want %q", storage, err, got, want)
		}
	}
}

// hold takes a connection from other calls.
func hold(t *testing.T, p *connections) *puddle.Resource[*connection] {
	t.Helper()
	held, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func TestConnections_ACallerInLineLeaves(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	p := s.connect(t, 1)
	held := hold(t, p)
	defer held.Release()
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer leave()
	if err := post(ctx, p, s.URL); !errors.Is(err, context.DeadlineExceeded) || s.open.Load() != 1 {
		t.Errorf("got %v over %d connections, want the end of the wait", err, s.open.Load())
	}
}

// A POST is not sent twice, so it must not meet a dead connection.
func TestConnections_TakeNoneThatIsDead(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	p := s.connect(t, 1)
	for range 2 {
		if err := post(t.Context(), p, s.URL); err != nil {
			t.Error(err)
		}
		s.CloseClientConnections()
	}
}

func TestConnections_CloseWhatIsIdleForLong(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	p := s.connect(t, 3)
	var all []*puddle.Resource[*connection]
	for range 3 {
		all = append(all, hold(t, p))
	}
	for _, held := range all {
		held.Release()
	}
	if err := post(t.Context(), p, s.URL); err != nil || p.Stat().TotalResources() != 3 {
		t.Errorf("got %v over %d connections, want 3 kept", err, p.Stat().TotalResources())
	}
	p.idle = time.Millisecond
	p.swept.Store(0)
	if err := post(t.Context(), p, s.URL); err != nil || p.swept.Load() == 0 {
		t.Errorf("got %v, swept: %t", err, p.swept.Load() > 0)
	}
	for s.open.Load() != 0 { // they are closed in the background
		p.swept.Store(0)
		p.closeOld()
	}
}

// A host that vanishes ends no connection. A call without an answer shows that others may be dead too.
func TestConnections_CloseIdleOnesAfterACallWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	p := s.connect(t, 2)
	busy := hold(t, p)
	if err := post(t.Context(), p, s.URL); err != nil {
		t.Fatal(err)
	}
	busy.Release()                                                       // the next call takes it
	for wait := 50 * time.Millisecond; s.silent.Load() == 0; wait *= 2 { // a busy host may stand still before the call
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if err := post(ctx, p, s.URL+"/silent"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no answer in time", err)
		}
		cancel()
	}
	if n := p.Stat().IdleResources(); n != 0 {
		t.Errorf("%d connections are still idle, want none", n)
	}
	if err := post(t.Context(), p, s.URL); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// The deadline of a caller that left stays on its connection.
func TestConnections_KeepNoneWhoseCallerLeft(t *testing.T) {
	t.Parallel()
	s := newFaultyStorage(t)
	p := s.connect(t, 1)
	ctx, leave := context.WithCancel(t.Context())
	dial := p.dial
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &leavingConn{conn, leave}, err
	}
	if err := post(ctx, p, s.URL); err != nil {
		t.Error(err)
	}
	p.dial = dial
	if err := post(t.Context(), p, s.URL); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// leavingConn is a connection whose caller leaves when the answer is there.
type leavingConn struct {
	net.Conn
	leave func()
}

func (c *leavingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.leave()
	return n, err
}
