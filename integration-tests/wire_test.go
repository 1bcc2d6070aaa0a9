package integration_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// wire passes the bytes between a storage instance and PostgreSQL on. It can fall
// silent, as a process or a server that the system stopped: connections stay open
// and nothing passes in either direction.
type wire struct {
	listener net.Listener
	server   string
	startup  func(message []byte) []byte // changes the first message of a connection; may be nil

	copies  sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	passing chan struct{} // closed while bytes pass
	at      []byte        // what the client sends when the wire falls silent
	paused  chan struct{} // closed when it did
	closed  bool
}

// newWire returns a wire to the server of databaseURL and the database's address
// through it. startup, unless nil, changes the first message of each connection.
func newWire(t *testing.T, databaseURL string, startup func(message []byte) []byte) (*wire, string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, server: u.Host, startup: startup, passing: make(chan struct{})}
	close(w.passing)
	w.copies.Go(w.accept)
	t.Cleanup(w.close)
	u.Host = listener.Addr().String()
	return w, u.String()
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		closed := w.closed
		w.mu.Unlock()
		if closed {
			_, _ = client.Close(), server.Close()
			return
		}
		w.copies.Go(func() { w.copyBytes(server, client, true) })
		w.copies.Go(func() { w.copyBytes(client, server, false) })
	}
}

// copyBytes copies from one side to the other until either ends.
func (w *wire) copyBytes(to, from net.Conn, byClient bool) {
	defer to.Close()
	first := byClient && w.startup != nil
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			bytes := chunk[:n]
			if first {
				bytes, first = w.startup(bytes), false
			}
			if byClient {
				w.pauseOnMatch(bytes)
			}
			<-w.awaitPassing()
			if _, err := to.Write(bytes); err != nil {
				return
			}
		}
		if err != nil {
			<-w.awaitPassing() // the end passes no earlier than the bytes do
			return
		}
	}
}

func (w *wire) awaitPassing() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passing
}

// pause makes the wire fall silent now.
func (w *wire) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passing = make(chan struct{})
}

// pauseAt makes the wire fall silent when the client sends text, which does not
// pass. The channel is closed then.
func (w *wire) pauseAt(text string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.paused = []byte(text), make(chan struct{})
	return w.paused
}

// pauseOnMatch falls silent if the client sends what the wire waits for.
func (w *wire) pauseOnMatch(sent []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.at) == 0 || !bytes.Contains(sent, w.at) {
		return
	}
	w.at, w.passing = nil, make(chan struct{})
	close(w.paused)
}

// resume ends the silence: what was held up passes.
func (w *wire) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.passing:
	default:
		close(w.passing)
	}
}

func (w *wire) close() {
	w.resume()
	w.mu.Lock()
	w.closed = true
	conns := w.conns
	w.mu.Unlock()
	for _, c := range append([]io.Closer{w.listener}, closers(conns)...) {
		_ = c.Close()
	}
	w.copies.Wait()
}

func closers(conns []net.Conn) []io.Closer {
	all := make([]io.Closer, len(conns))
	for i, c := range conns {
		all[i] = c
	}
	return all
}
