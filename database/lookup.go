package database

import (
	"context"
	"net"
	"time"
)

// answerTimeout bounds the wait for an answer of a name server. Go waits 5 s, and pgx's
// time-out begins after the lookup, so one lost answer would take as long as a request.
const answerTimeout = time.Second

// resolver looks up the hosts of a URL that sets no connect_timeout.
var resolver = newResolver(answerTimeout, new(net.Dialer).DialContext)

// newResolver returns Go's resolver, which asks each name server twice, with this bound for
// each answer. If cgo looks up names instead, the bound is that of the C library.
func newResolver(answer time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *net.Resolver {
	return &net.Resolver{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if udp, ok := conn.(*net.UDPConn); ok {
			return queryConn{udp, answer}, nil
		}
		return conn, err
	}}
}

// queryConn carries one query to a name server.
type queryConn struct {
	*net.UDPConn

	answer time.Duration
}

// SetDeadline implements net.Conn. The resolver calls it before the query.
func (c queryConn) SetDeadline(latest time.Time) error {
	if end := time.Now().Add(c.answer); end.Before(latest) {
		latest = end
	}
	return c.UDPConn.SetDeadline(latest)
}
