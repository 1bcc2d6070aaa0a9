package locket

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// boundedListener closes connections above its limit at once. So their clients get
// Unavailable, and may try another instance, before TLS costs anything.
type boundedListener struct {
	net.Listener
	limit int64
	open  atomic.Int64
	log   *slog.Logger
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.limit {
			return &countedConn{Conn: conn, uncount: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.log.DebugContext(context.Background(), "a connection is one too many", "limit", l.limit)
		_ = conn.Close() // nothing was sent
	}
}

// countedConn is a connection of a boundedListener.
type countedConn struct {
	net.Conn
	uncount func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	defer c.uncount()
	return c.Conn.Close()
}
