// Package resolver looks up the hosts that the services connect to.
package resolver

import (
	"context"
	"net"
	"time"
)

// AnswerTimeout bounds the wait for an answer of a name server. Go waits 5 s, so one lost answer
// would take longer than a connection attempt may.
const AnswerTimeout = time.Second

// Default is the resolver of connections to PostgreSQL and to storage.
var Default = New(AnswerTimeout, new(net.Dialer).DialContext)

// New returns Go's resolver, which asks each name server twice, with this bound for each answer.
// If cgo looks up names instead, the bound is that of the C library.
func New(answer time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *net.Resolver {
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
