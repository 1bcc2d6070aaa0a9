package storageclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/puddle/v2"

	"checkoutlock/config/resolver"
)

const (
	dialTimeout = 2 * time.Second // of TCP and TLS
	// idleTimeout is less than the minute after which storage closes an idle
	// connection, so that a call rarely meets one that is being closed.
	idleTimeout = 45 * time.Second
	// maxAnswer is the largest answer that is read: a page of about 20000 loans.
	maxAnswer = 32 << 20
	// maxHeaders is the most that is read for the headers of an answer, with those of 1xx answers before it.
	maxHeaders = 64 << 10
)

// connections is a bounded number of connections to storage, for HTTP/1.1. It keeps all idle ones:
// under load, none is closed to be opened again. A call runs in its caller's goroutine. Go's transport
// needs two more for each connection, and the switches between them are a tenth of a call's processor
// time.
type connections struct {
	*puddle.Pool[*connection]
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	idle  time.Duration
	swept atomic.Int64 // when old connections were closed, in Unix nanoseconds
}

// connection is in use by one call, or idle.
type connection struct {
	net.Conn
	limit  *io.LimitedReader // below reader
	reader *bufio.Reader
	writer *bufio.Writer
	kept   bool // it has answered a call before
}

// newConnections returns at most n connections, at least 1. It connects when it is used.
func newConnections(storage *url.URL, n int) *connections {
	address := net.JoinHostPort(storage.Hostname(), cmp.Or(storage.Port(), storage.Scheme))
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Resolver: resolver.Default}
	p := &connections{dial: dialer.DialContext, idle: idleTimeout}
	if storage.Scheme == "https" {
		p.dial = (&tls.Dialer{NetDialer: dialer}).DialContext
	}
	p.Pool, _ = puddle.NewPool(&puddle.Config[*connection]{
		Constructor: func(ctx context.Context) (*connection, error) {
			conn, err := p.dial(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			limit := &io.LimitedReader{R: conn}
			return &connection{Conn: conn, limit: limit, reader: bufio.NewReader(limit), writer: bufio.NewWriter(conn)}, nil
		},
		Destructor: func(c *connection) { _ = c.Close() },
		MaxSize:    int32(n), //nolint:gosec // at most twice CHECK_OUT_CONCURRENCY
	}) // its only error is a size of 0
	return p
}

var (
	errTooLong = errors.New("the answer is too long")
	// errLongHeaders leaves the outcome of the call unknown.
	errLongHeaders = errors.New("the headers of the answer are too long")
	// errNoAnswer is the end of a connection before the first byte of the answer.
	errNoAnswer = errors.New("the connection ended without an answer")
)

// received is a whole answer.
type received struct {
	status int
	header http.Header
	body   []byte
	last   bool // the server closes the connection, or has sent more: the next call would read it
	// repeated means that the request was sent again, and the first one may have been done.
	repeated bool
}

// exchange makes a call and reads the whole answer. It waits for a connection until the request's
// context ends. A GET or DELETE over a kept connection that ends without a byte of the answer is sent
// again over another. Nothing else is sent twice.
func (p *connections) exchange(req *http.Request) (received, error) {
	for repeated := false; ; repeated = true {
		if answer, again, err := p.try(req); !again {
			answer.repeated = repeated
			return answer, err
		}
	}
}

func (p *connections) try(req *http.Request) (_ received, again bool, err error) {
	ctx := req.Context()
	held, err := p.take(ctx)
	if err != nil {
		return received{}, false, err
	}
	c, keep, began := held.Value(), false, time.Now()
	defer func() {
		if keep {
			held.Release()
		} else {
			held.Destroy()
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	answer, err := c.call(req)
	if stopped := stop(); err == nil {
		keep = stopped && !answer.last
	} else if ctx.Err() != nil {
		if errors.Is(err, errNoAnswer) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.closeIdle(time.Since(began)) // the host may have vanished, which ends no connection
		}
		return received{}, false, ctx.Err()
	}
	again = c.kept && errors.Is(err, errNoAnswer) && (req.Method == http.MethodGet || req.Method == http.MethodDelete)
	c.kept = true
	return answer, again, err
}

// take returns an idle connection that is alive, or a new one. TLS may have sent something over a new one.
func (p *connections) take(ctx context.Context) (*puddle.Resource[*connection], error) {
	p.closeOld()
	for {
		held, err := p.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		c, idle := held.Value(), held.IdleDuration() // that of a new one includes the dial
		if isNew := !c.kept && idle < dialTimeout; isNew || idle < p.idle && c.isAlive() {
			return held, nil
		}
		held.Destroy()
	}
}

// closeOld closes what was idle for too long, which no call may take for a while.
func (p *connections) closeOld() {
	now, last := time.Now().UnixNano(), p.swept.Load()
	if now-last >= int64(p.idle) && p.swept.CompareAndSwap(last, now) {
		p.closeIdle(p.idle)
	}
}

// closeIdle closes what has been idle for at least d.
func (p *connections) closeIdle(d time.Duration) {
	for _, held := range p.AcquireAllIdle() {
		if held.IdleDuration() < d {
			held.ReleaseUnused()
		} else {
			held.Destroy()
		}
	}
}

// isAlive reports whether the server has neither closed the connection nor sent anything. TLS may have
// sent what is for itself alone, which costs a new connection at most.
func (c *connection) isAlive() bool {
	conn := c.Conn
	if secure, ok := conn.(*tls.Conn); ok {
		_ = secure.SetReadDeadline(time.Unix(1, 0)) // Read returns only what TLS has received before
		_, err := secure.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || secure.SetReadDeadline(time.Time{}) != nil {
			return false
		}
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
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

// call sends the request and reads the final answer, also if the server has closed the connection
// before it read the whole request. Faults: errNoAnswer, errLongHeaders, errTooLong.
func (c *connection) call(req *http.Request) (received, error) {
	unsent := req.Write(c.writer)
	if unsent == nil {
		unsent = c.writer.Flush()
	}
	c.limit.N = maxHeaders
	if _, err := c.reader.Peek(1); err != nil {
		return received{}, fmt.Errorf("%w: %w", errNoAnswer, cmp.Or(unsent, err))
	}
	var resp *http.Response
	for resp == nil || resp.StatusCode < http.StatusOK {
		var err error
		if resp, err = http.ReadResponse(c.reader, req); err != nil { //nolint:bodyclose // it has nothing else to close
			if c.limit.N <= 0 {
				err = errLongHeaders
			}
			return received{}, err
		}
	}
	c.limit.N = math.MaxInt64
	var text bytes.Buffer
	text.Grow(int(min(max(resp.ContentLength, 0), maxAnswer)) + bytes.MinRead) // ReadFrom keeps MinRead free
	if _, err := text.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return received{}, fmt.Errorf("reading the answer: %w", err)
	}
	if text.Len() > maxAnswer {
		return received{}, errTooLong
	}
	last := resp.Close || c.reader.Buffered() > 0
	return received{status: resp.StatusCode, header: resp.Header, body: text.Bytes(), last: last}, nil
}
