package integration_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// connections is a TCP proxy to one address that counts its connections.
type connections struct {
	address string

	mu              sync.Mutex
	open, most, all int
}

// countConnections starts a proxy to the target, which runs until the test ends.
func countConnections(t *testing.T, target string) *connections {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &connections{address: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				c.forward(t, conn, strings.TrimPrefix(target, "http://"))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return c
}

// forward copies one connection in both directions until one end closes it.
func (c *connections) forward(t *testing.T, from net.Conn, target string) {
	defer from.Close()
	c.countConnection(1)
	defer c.countConnection(-1)
	to, err := net.Dial("tcp", target)
	if err != nil {
		if !errors.Is(err, net.ErrClosed) {
			t.Log(err)
		}
		return
	}
	defer to.Close()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{to, from}, {from, to}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	wg.Wait()
}

func (c *connections) countConnection(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += delta
	c.most = max(c.most, c.open)
	c.all += max(0, delta)
}

// readCounts returns the largest number of connections open at once, and the number made
// in all.
func (c *connections) readCounts() (peak, made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most, c.all
}
