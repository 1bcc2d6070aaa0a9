package devpostgres

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

func TestAcceptsConnections(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		want   bool
	}{
		"asks for a password": {"R\x00\x00\x00\x17", true},
		"still starts up":     {"E\x00\x00\x00\x60SFATAL", false},
		"another program":     {"HTTP/1.1 400 Bad Request", false},
		"hangs up":            {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port, got := serveOnce(t, tt.answer)
			if answers := acceptsConnections(t.Context(), port); answers != tt.want {
				t.Errorf("got %t, want %t", answers, tt.want)
			}
			if said, want := <-got, "user\x00postgres\x00database\x00postgres\x00\x00"; !strings.HasSuffix(said, want) {
				t.Errorf("the server received %q, want %q at its end", said, want)
			}
		})
	}
}

// serveOnce answers one client. The channel receives what the client has sent.
func serveOnce(t *testing.T, answer string) (port int, received <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	said := make(chan string, 1)
	go func() {
		defer close(said)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 512)
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		said <- string(b[:n])
		if _, err := conn.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, said
}

func TestAcceptsConnections_GivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if acceptsConnections(ctx, l.Addr().(*net.TCPAddr).Port) {
		t.Error("a silent server counts as ready")
	}
}

func TestFindFreePort_AvoidsClientPorts(t *testing.T) {
	t.Parallel()
	known := map[int]bool{}
	for range 500 { // chance alone would return about ten of them twice
		port, err := FindFreePort(t.Context())
		if err != nil || port < 20000 || port >= 32000 || known[port] {
			t.Errorf("got %d, %v, want a new port below those of clients", port, err)
		}
		known[port] = true
	}
}
