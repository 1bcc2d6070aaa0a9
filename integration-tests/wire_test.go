package integration_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// wire is a TCP proxy between a storage instance and PostgreSQL. While it is paused, its
// connections stay open and no byte passes, as with a stopped process or server.
type wire struct {
	listener net.Listener
	server   string
	startup  func(message []byte) []byte // changes the first message of a connection; may be nil

	copies  sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	passing chan struct{} // closed while bytes pass
	at      []byte        // the client's bytes that pause the wire
	paused  chan struct{} // closed when they have come
	closed  bool
}

// newWire returns a wire to the server of databaseURL, and the database's address through
// the wire. If startup is set, it changes the first message of each connection.
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

// copyBytes copies from one side to the other until either side ends.
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
			<-w.awaitPassing() // the end of a connection does not pass either
			return
		}
	}
}

// awaitPassing returns a channel that is closed while bytes pass.
func (w *wire) awaitPassing() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passing
}

// pause stops all bytes.
func (w *wire) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passing = make(chan struct{})
}

// pauseAt pauses the wire when the client sends text, which does not pass. The channel is
// closed then.
func (w *wire) pauseAt(text string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.paused = []byte(text), make(chan struct{})
	return w.paused
}

// pauseOnMatch pauses the wire if the client sends the text of pauseAt.
func (w *wire) pauseOnMatch(sent []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.at) == 0 || !bytes.Contains(sent, w.at) {
		return
	}
	w.at, w.passing = nil, make(chan struct{})
	close(w.paused)
}

// resume lets the delayed bytes pass.
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
	_ = w.listener.Close()
	for _, c := range conns {
		_ = c.Close()
	}
	w.copies.Wait()
}
