package storageclient

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// connections is a bounded number of connections to one server, for plain HTTP/1.1. It implements
// http.RoundTripper in the caller's goroutine. Go's transport needs two more for each connection, and
// the switches between them are a tenth of a call's processor time.
//
// A GET or DELETE over a kept connection that ends without a byte of the answer is sent once more over
// another. Nothing else is sent twice.
type connections struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	places chan struct{} // one for each connection that is in use

	mu   sync.Mutex
	idle []*connection // the one used last is the last
}

// connection is in use by one call, or idle.
type connection struct {
	net.Conn
	reader    *bufio.Reader
	writer    *bufio.Writer
	kept      bool // it has answered a call before
	idleSince time.Time
}

// RoundTrip implements http.RoundTripper. It waits for a connection until the request's context ends.
func (p *connections) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		c, err := p.open(req)
		if err != nil {
			<-p.places
			return nil, err
		}
		resp, err := p.exchange(c, req)
		if err == nil {
			return resp, nil
		}
		_, unanswered := errors.AsType[noAnswerError](err)
		if !unanswered || !c.kept || req.Method != http.MethodGet && req.Method != http.MethodDelete {
			<-p.places
			return nil, err
		}
	}
}

// noAnswerError is the end of a connection before the first byte of the answer.
type noAnswerError struct{ error }

// Unwrap returns what ended the connection.
func (e noAnswerError) Unwrap() error { return e.error }

// open returns an idle connection that is alive, or a new one.
func (p *connections) open(req *http.Request) (*connection, error) {
	for c := p.takeIdle(); c != nil; c = p.takeIdle() {
		if time.Since(c.idleSince) < idleTimeout && c.isAlive() {
			return c, nil
		}
		_ = c.Close()
	}
	address := req.URL.Host
	if req.URL.Port() == "" {
		address += ":http"
	}
	conn, err := p.dial(req.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, reader: bufio.NewReader(conn), writer: bufio.NewWriter(conn)}, nil
}

func (p *connections) takeIdle() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c
}

// keep makes a connection idle, and closes one that was idle for too long.
func (p *connections) keep(c *connection) {
	c.kept, c.idleSince = true, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	if time.Since(p.idle[0].idleSince) >= idleTimeout {
		_ = p.idle[0].Close()
		p.idle = p.idle[1:]
	}
}

// CloseIdleConnections is called by http.Client.
func (p *connections) CloseIdleConnections() {
	for c := p.takeIdle(); c != nil; c = p.takeIdle() {
		_ = c.Close()
	}
}

// isAlive reports whether the server has neither closed an idle connection nor sent anything.
func (c *connection) isAlive() bool {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	waiting := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		waiting = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && waiting
}

// exchange sends the request and reads the head of the answer. The connection is kept once the body is
// read to its end.
func (p *connections) exchange(c *connection, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.call(req)
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	resp.Body = &answerBody{ReadCloser: resp.Body, ctx: ctx, finish: func(complete bool) {
		if stop() && complete && !resp.Close {
			p.keep(c)
		} else {
			_ = c.Close()
		}
		<-p.places
	}}
	return resp, nil
}

// call sends the request and reads the head of the final answer, also if the server has closed the
// connection before it read the whole request. Fault: noAnswerError.
func (c *connection) call(req *http.Request) (*http.Response, error) {
	unsent := req.Write(c.writer)
	if unsent == nil {
		unsent = c.writer.Flush()
	}
	if _, err := c.reader.Peek(1); err != nil {
		return nil, noAnswerError{cmp.Or(unsent, err)}
	}
	for {
		resp, err := http.ReadResponse(c.reader, req)
		if err != nil || resp.StatusCode >= http.StatusOK {
			return resp, err
		}
	}
}

// answerBody gives the connection back at its end.
type answerBody struct {
	io.ReadCloser
	ctx      context.Context //nolint:containedctx // that of the request
	finish   func(complete bool)
	finished bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(errors.Is(err, io.EOF))
		if b.ctx.Err() != nil && !errors.Is(err, io.EOF) {
			err = b.ctx.Err()
		}
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.end(false)
	return nil
}

func (b *answerBody) end(complete bool) {
	if !b.finished {
		b.finished = true
		b.finish(complete)
	}
}
