package locktopus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/web"
)

// harness is a server over a store in memory, reached through pipes. It belongs to a bubble
// of testing/synctest, whose clock is that of all time-outs.
type harness struct {
	t         *testing.T
	server    *server
	store     *breakingStore
	claims    *engine.Claims
	pipes     *pipeListener
	http      *http.Server
	end       func()
	log       *lockedBuffer
	engineLog *breakingLog
	// registry has the metric of panics.
	registry *prometheus.Registry
}

// inBubble runs test with a front. The bubble fails if a goroutine stays.
func inBubble(t *testing.T, test func(f *harness)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newHarness(t, enginetest.NewStore())
		defer f.close()
		test(f)
	})
}

// connections returns the number of open connections.
func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func newHarness(t *testing.T, store *enginetest.Store) *harness {
	f := &harness{
		t: t, store: &breakingStore{Store: store}, pipes: newPipeListener(),
		log: &lockedBuffer{}, registry: prometheus.NewRegistry(),
	}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	f.engineLog = &breakingLog{Handler: log.Handler()}
	f.claims = engine.NewClaims(f.store, observer{}, slog.New(f.engineLog))
	f.server = newServer(Options{
		Settings: Settings{AbandonTimeout: time.Minute}, Claims: f.claims, Panics: web.NewPanics(f.registry, log), Log: log,
		CountRefusal: func() bool { return true },
	})
	f.http = &http.Server{Handler: f.server, ReadHeaderTimeout: time.Second}
	stop := enginetest.RunLoops(f.claims)
	var running sync.WaitGroup
	running.Go(func() { _ = f.http.Serve(f.pipes) })
	synctest.Wait() // until the lease is there
	f.end = sync.OnceFunc(func() {
		f.server.stopAll()
		_ = f.http.Close()
		stop()
		running.Wait()
	})
	return f
}

func (f *harness) close() { f.end() }

// observer ignores events.
type observer struct{}

func (observer) Observe(engine.Event) {}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// pipeListener accepts the other ends of pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// client is a web socket of a test. A goroutine reads it all the time.
type client struct {
	t        *testing.T
	ws       *websocket.Conn
	messages chan string   // of the server
	pongs    chan string   // answers to pings
	closed   chan struct{} // after the last message
	err      error         // why it closed
}

// connect opens a connection; query is added to the namespace "library".
func (f *harness) connect(query string) *client { return f.connectTo("namespace=library" + query) }

func (f *harness) connectTo(query string) *client {
	f.t.Helper()
	c, _, err := f.dial(query)
	if err != nil {
		f.t.Fatalf("connecting with %s: %v", query, err)
	}
	return c
}

// connectTwo opens two connections that claim the path a: one holds it, and the other waits. query is
// added for the holder.
func (f *harness) connectTwo(query string) (holder, waiter *client) {
	f.t.Helper()
	holder, waiter = f.connect(query), f.connect("")
	holder.lock("w a")
	holder.wants("1", "lock", "acquired")
	waiter.lock("w a")
	waiter.wants("2", "lock", "enqueued")
	return holder, waiter
}

// dial returns the status of the answer, and a client after an upgrade.
func (f *harness) dial(query string) (*client, int, error) {
	dialer := websocket.Dialer{NetDialContext: f.pipes.dial}
	ws, answer, err := dialer.DialContext(context.Background(), "ws://pipe/v1?"+query, http.Header{
		"Origin": {"https://elsewhere.example.org"},
	})
	if answer == nil {
		return nil, 0, err
	}
	_ = answer.Body.Close()
	if err != nil {
		return nil, answer.StatusCode, err
	}
	return newClient(f.t, ws), answer.StatusCode, nil
}

func newClient(t *testing.T, ws *websocket.Conn) *client {
	c := &client{
		t: t, ws: ws, messages: make(chan string, 1000), pongs: make(chan string, 1000), closed: make(chan struct{}),
	}
	ws.SetPongHandler(func(text string) error {
		c.pongs <- text
		return nil
	})
	go c.read()
	return c
}

func (c *client) read() {
	defer close(c.closed)
	for {
		_, text, err := c.ws.ReadMessage()
		if err != nil {
			c.err = err
			_ = c.ws.Close()
			return
		}
		c.messages <- string(text)
	}
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatalf("sending %.200s: %v", text, err)
	}
}

// The parts of a frame's first byte, beside the kinds of package websocket.
const (
	final        = 0x80
	continuation = 0
)

// sendFrame sends one frame, with a payload of at most 125 bytes.
func sendFrame(to net.Conn, first byte, payload string) error {
	const masked = 0x80 // by zeros
	_, err := to.Write(append([]byte{first, masked | byte(len(payload)), 0, 0, 0, 0}, payload...))
	return err
}

func (c *client) sendFrame(first byte, payload string) {
	c.t.Helper()
	if err := sendFrame(c.ws.NetConn(), first, payload); err != nil {
		c.t.Fatal(err)
	}
}

// lock asks for resources such as "w a/b" and "r c".
func (c *client) lock(resources ...string) {
	c.t.Helper()
	list := []map[string]any{}
	for _, text := range resources {
		kind, path, _ := strings.Cut(text, " ")
		list = append(list, map[string]any{"type": kind, "path": strings.Split(path, "/")})
	}
	message, err := json.Marshal(map[string]any{"action": "lock", "resources": list})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(message))
}

func (c *client) release() {
	c.t.Helper()
	c.send(`{"action":"release"}`)
}

// next returns the next message. Before it, the clock may move on by a day.
func (c *client) next() string {
	c.t.Helper()
	select {
	case text := <-c.messages:
		return text
	case <-time.After(24 * time.Hour):
		c.t.Fatal("no message in a day")
		return ""
	}
}

// wants checks the next message, which must be there without any time to pass.
func (c *client) wants(id, action, state string) {
	c.t.Helper()
	synctest.Wait()
	select {
	case text := <-c.messages:
		c.check(text, id, action, state)
	default:
		c.t.Fatalf("no message, want %s %s %s", id, action, state)
	}
}

func (c *client) check(text, id, action, state string) {
	c.t.Helper()
	if want := fmt.Sprintf(`{"id":%q,"action":%q,"state":%q}`, id, action, state); strings.TrimSpace(text) != want {
		c.t.Fatalf("got %s, want %s", text, want)
	}
}

// wantsNothing checks that no message came.
func (c *client) wantsNothing() {
	c.t.Helper()
	synctest.Wait()
	select {
	case text := <-c.messages:
		c.t.Fatalf("got %s, want nothing", text)
	default:
	}
}

// wantsError checks for an error frame that contains text, then a close with the code and
// no reason.
func (c *client) wantsError(text string, code int) {
	c.t.Helper()
	got := c.next()
	if !strings.HasPrefix(got, "communication error: ") || !strings.Contains(got, text) {
		c.t.Fatalf("got %q, want a communication error with %q", got, text)
	}
	c.wantsClose(code)
}

func (c *client) wantsClose(code int) {
	c.t.Helper()
	<-c.closed
	var closed *websocket.CloseError
	if !errors.As(c.err, &closed) || closed.Code != code || closed.Text != "" {
		c.t.Fatalf("closed with %v, want %d without a reason", c.err, code)
	}
	c.wantsNothing()
}

// close closes as the clients do, and returns once the server has closed too.
func (c *client) close() {
	c.t.Helper()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(time.Second))
	c.wantsClose(websocket.CloseNormalClosure)
}

// drop ends the connection without a close frame.
func (c *client) drop() {
	_ = c.ws.Close()
	<-c.closed
	synctest.Wait()
}

// get sends a request without an upgrade and returns status and body.
func (f *harness) get(pathAndQuery string, header ...string) (status int, body string) {
	f.t.Helper()
	transport := &http.Transport{DialContext: f.pipes.dial, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://pipe"+pathAndQuery, http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		f.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(b.String())
}

// stats returns the first five statistics of a namespace.
func (f *harness) stats(namespace string) [5]int64 {
	f.t.Helper()
	status, body := f.get("/stats_v1?namespace=" + url.QueryEscape(namespace))
	var s statistics
	if err := json.Unmarshal([]byte(body), &s); status != http.StatusOK || err != nil {
		f.t.Fatalf("the statistics are %d %s", status, body)
	}
	return [5]int64{
		s.LastGroupID, int64(s.GroupsPending), int64(s.GroupsAcquired), int64(s.LocksPending), int64(s.LocksAcquired),
	}
}

// pending returns a message that has come, or an empty text.
func (c *client) pending() string {
	synctest.Wait()
	select {
	case text := <-c.messages:
		return text
	default:
		return ""
	}
}
