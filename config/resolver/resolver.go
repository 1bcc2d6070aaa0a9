// Package resolver looks up the hosts that the services connect to, and connects over HTTP.
package resolver

import (
	"context"
	"errors"
	"net"
	"time"
)

// AnswerTimeout bounds the wait for an answer of a name server. Go waits 5 s, so one lost answer
// would take longer than a connection attempt may.
const AnswerTimeout = time.Second

// Default is the resolver of all connections except those to Kafka.
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

// Read implements net.Conn.
func (c queryConn) Read(answer []byte) (int, error) {
	n, err := c.UDPConn.Read(answer)
	return n, hidePort(err)
}

// Write implements net.Conn.
func (c queryConn) Write(query []byte) (int, error) {
	n, err := c.UDPConn.Write(query)
	return n, hidePort(err)
}

// hidePort takes this host's port, which is another one for each query, out of an error. So the log has one
// line for a name server that is away, and not one for each probe of readiness.
func hidePort(err error) error {
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		failed.Source = nil
	}
	return err
}
