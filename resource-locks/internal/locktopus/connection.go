package locktopus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// Limits of a connection.
const (
	maxMessage = 256 << 10 // bytes; a claim of the largest size fits

	// pingInterval is how often the server pings a client.
	pingInterval = 20 * time.Second
	// silenceTimeout ends a connection that sends nothing, not even a pong.
	silenceTimeout = 50 * time.Second
	// writeTimeout ends a connection that does not read.
	writeTimeout = 10 * time.Second
	// callTimeout bounds one call of the engine.
	callTimeout = 5 * time.Second
	// closeTimeout bounds the last frames, and the wait for the client's close frame.
	closeTimeout = 2 * time.Second
)

// workerName names connections where their panics are logged and counted.
const workerName = "connection of Locktopus"

// closeProtocol is the close code after an error frame, as clients know it.
const closeProtocol = 3000

var (
	errStopping = errors.New("the service is stopping")
	errEnded    = errors.New("the connection has ended")
	errLost     = errors.New("the lock is gone: staff released it, or the service lost its lease in the database")
	errTooLarge = errProtocol("the message has more than %d bytes", maxMessage)
)

// connection is one web socket. The goroutine of serve reads, handles messages, and so ends
// with the connection. Grants, pings and the stop come from short goroutines of others.
type connection struct {
	*server
	ws        *websocket.Conn
	namespace string
	owner     string // names the connection for operators
	abandon   time.Duration

	mu      sync.Mutex // held while an event is handled; guards the fields below
	session session
	ticket  *engine.Ticket // nil in stateReady
	pings   *time.Timer
	ended   bool
}

// serve talks with the client until the connection ends or stopping is done.
func (c *connection) serve(ctx, stopping context.Context) {
	c.ws.SetPingHandler(func(text string) error {
		if err := c.allowSilence(); err != nil {
			return err
		}
		return c.ws.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(writeTimeout))
	})
	c.ws.SetPongHandler(func(string) error { return c.allowSilence() })
	c.startPings(ctx)
	unregister := context.AfterFunc(stopping, func() { c.end(ctx, errStopping) })
	defer unregister()
	c.end(ctx, c.readMessages(ctx))
	c.drain()
	_ = c.ws.Close()
}

// readMessages reads and handles messages until one of both fails. A panic is an error.
func (c *connection) readMessages(ctx context.Context) (err error) {
	defer fault.Recover(&err)
	for err == nil {
		var message io.Reader
		if message, err = c.awaitMessage(); err == nil {
			err = c.handleMessage(ctx, message)
		}
	}
	return err
}

// handleEvent runs f, one event at a time, unless the connection has ended. It turns a panic
// into an error.
func (c *connection) handleEvent(f func() error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errEnded
	}
	defer fault.Recover(&err)
	return f()
}

// end sends the last frames and leaves the lock. The reading then ends with the client's
// close frame, or after closeTimeout. Only the first call counts.
func (c *connection) end(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.pings.Stop()
	err = c.notePanic(ctx, err)
	_ = c.notePanic(ctx, try(func() { c.sayClose(ctx, err) }))
	_ = c.notePanic(ctx, try(func() { c.disconnect(ctx) }))
	_ = c.ws.SetReadDeadline(time.Now().Add(closeTimeout))
}

// try runs f. A panic is an error.
func try(f func()) (err error) {
	defer fault.Recover(&err)
	f()
	return nil
}

// notePanic logs and counts an error that was a panic. It returns it without the stack.
func (c *connection) notePanic(ctx context.Context, err error) error {
	if !errors.As(err, new(*fault.PanicError)) {
		return err
	}
	c.Panics.Note(ctx, workerName, err)
	return fault.New(fault.Internal, "%s", fault.Text(err))
}

// startPings pings the client every pingInterval, by a timer that costs less than a
// goroutine.
func (c *connection) startPings(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings = time.AfterFunc(pingInterval, func() {
		err := c.handleEvent(func() error {
			c.pings.Reset(pingInterval)
			return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		})
		if err != nil {
			c.end(ctx, err)
		}
	})
}

// handleTicket answers that the ticket is held, and ends the connection of a lost one.
func (c *connection) handleTicket(ctx context.Context, t *engine.Ticket) {
	err := c.handleEvent(func() error {
		switch {
		case c.ticket != t:
			return nil
		case isClosed(t.Lost()):
			return errLost
		case c.session.state == stateEnqueued && isClosed(t.Held()):
			return c.send(c.session.grant())
		}
		return nil
	})
	if err != nil {
		c.end(ctx, err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// handleRequest does what a message asks for and answers it.
func (c *connection) handleRequest(ctx context.Context, frame []byte) error {
	r, err := parseRequest(frame)
	if err != nil {
		return err
	}
	if err := c.session.checkAction(r.Action); err != nil {
		return err
	}
	if r.Action == actionLock {
		return c.lock(ctx, r.Resources)
	}
	return c.release(ctx)
}

func (c *connection) lock(ctx context.Context, raw json.RawMessage) error {
	resources, err := parseResources(raw)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t, err := c.Claims.Lock(call, c.namespace, c.owner, c.abandon, resources)
	if err != nil {
		return err
	}
	c.ticket = t
	c.Claims.Notify(t, func() { c.handleTicket(ctx, t) })
	if isClosed(t.Lost()) {
		return errLost
	}
	return c.send(c.session.lock(strconv.FormatInt(t.Number, 10), isClosed(t.Held())))
}

func (c *connection) release(ctx context.Context) error {
	answer := c.session.release() // the client holds it no longer, even if this fails
	if err := c.Claims.Release(ctx, c.ticket); err != nil {
		return err
	}
	c.ticket = nil
	return c.send(answer)
}

// disconnect leaves a lock that was not released to its abandon time-out. One that the client does
// not know of leaves at once.
func (c *connection) disconnect(ctx context.Context) {
	if c.ticket == nil {
		return
	}
	c.Claims.Disconnect(ctx, c.ticket, c.session.state == stateAcquired)
	c.ticket = nil
}

func (c *connection) send(r response) error {
	message, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.sendText(message, writeTimeout)
}

func (c *connection) sendText(text []byte, timeout time.Duration) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.TextMessage, text)
}

// sayClose sends the last frames, unless the client has gone.
func (c *connection) sayClose(ctx context.Context, err error) {
	var mistake protocolError
	_, isFault := errors.AsType[*fault.Error](err)
	code := websocket.CloseInternalServerErr
	switch {
	case errors.As(err, &mistake), fault.Is(err, fault.Invalid):
		code = closeProtocol
	case errors.Is(err, errStopping):
		_ = c.sendClose(websocket.CloseGoingAway)
		return
	case errors.Is(err, errLost), isFault:
		level := engine.LevelOf(err, c.CountRefusal)
		if c.ticket != nil && !c.Claims.IsLeased(c.ticket) {
			level = slog.LevelDebug // the engine has logged the end of all
		}
		c.Log.Log(ctx, level, "a connection ends", "namespace", c.namespace, "owner", c.owner, "err", err)
	default:
		return // the client closed, or cannot be reached
	}
	if c.sendText([]byte("communication error: "+fault.Text(err)), closeTimeout) == nil {
		_ = c.sendClose(code)
	}
}

func (c *connection) sendClose(code int) error {
	return c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(closeTimeout))
}

// drain reads until the client has closed, or the deadline of end. Closing a socket with
// unread bytes resets it, and the client would lose the last frames.
func (c *connection) drain() {
	var err error
	for err == nil {
		_, _, err = c.ws.NextReader()
	}
	if !errors.As(err, new(*websocket.CloseError)) { // it may be an earlier error, such as a flood
		_, _ = io.Copy(io.Discard, c.ws.NetConn())
	}
}

// awaitMessage waits for the next text or binary message, of any number of frames.
func (c *connection) awaitMessage() (io.Reader, error) {
	if err := c.allowSilence(); err != nil {
		return nil, err
	}
	_, r, err := c.ws.NextReader()
	return r, err
}

// buffers are those of messages that are handled. An idle connection has none.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// handleMessage reads a message and handles its request.
func (c *connection) handleMessage(ctx context.Context, message io.Reader) error {
	frame := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(frame)
	frame.Reset()
	n, err := frame.ReadFrom(io.LimitReader(message, maxMessage+1))
	switch {
	case err != nil:
		return err
	case n > maxMessage:
		return errTooLarge
	}
	return c.handleEvent(func() error { return c.handleRequest(ctx, frame.Bytes()) })
}

// allowSilence lets the client be silent from now on. It leaves the deadline of end.
func (c *connection) allowSilence() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(silenceTimeout))
}
