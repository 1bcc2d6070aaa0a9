package locktopus

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// Limits of a connection.
const (
	maxMessage = 256 << 10 // bytes; a claim of the largest size fits
	frameRate  = 500       // frames per second, pings and pongs included
	frameBurst = 1000

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

// closeProtocol is the close code after an error frame, as clients know it.
const closeProtocol = 3000

var (
	errStopping = errors.New("the service is stopping")
	errLost     = errors.New("the lock is gone: staff released it, or the service lost its lease in the database")
	errFlood    = errProtocol("too many frames: allowed are %d per second, and %d at once", frameRate, frameBurst)
	errTooLarge = errProtocol("the message has more than %d bytes", maxMessage)
)

// connection is one web socket. Its serve goroutine owns all fields and alone sends
// messages; a second goroutine reads. Both end with the connection.
type connection struct {
	ws        *websocket.Conn
	claims    *engine.Claims
	namespace string
	owner     string // names the connection for operators
	abandon   time.Duration
	log       *slog.Logger

	frames  *rate.Limiter // of the reading goroutine
	session session
	ticket  *engine.Ticket // nil in stateReady
}

// received is a message of the client, or why there is none any more.
type received struct {
	frame []byte
	err   error
}

// serve talks with the client until the connection ends or stop is closed.
func (c *connection) serve(ctx context.Context, stop <-chan struct{}) {
	messages, done, readingEnded := make(chan received), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(readingEnded)
		c.read(messages, done)
	}()
	err := c.converse(ctx, messages, stop)
	c.sayClose(ctx, err)
	close(done)
	c.disconnect(ctx)
	wait := time.NewTimer(closeTimeout)
	defer wait.Stop()
	select {
	case <-readingEnded:
	case <-wait.C:
	}
	_ = c.ws.Close() // ends the reading
	<-readingEnded
}

// converse handles what happens to the connection, one event after the other. It returns
// why the connection ends.
func (c *connection) converse(ctx context.Context, messages <-chan received, stop <-chan struct{}) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.ErrorContext(ctx, "panic", "err", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "internal error")
		}
	}()
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for err == nil {
		select {
		case m := <-messages:
			err = m.err
			if err == nil {
				err = c.handle(ctx, m.frame)
			}
		case <-c.granted():
			err = c.send(c.session.grant())
		case <-c.lost():
			err = errLost
		case <-ping.C:
			err = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		case <-stop:
			err = errStopping
		}
	}
	return err
}

// granted is closed when the waiting lock is held.
func (c *connection) granted() <-chan struct{} {
	if c.session.state != stateEnqueued {
		return nil
	}
	return c.ticket.Held()
}

// lost is closed when the lock is gone.
func (c *connection) lost() <-chan struct{} {
	if c.ticket == nil {
		return nil
	}
	return c.ticket.Lost()
}

// handle does what a message asks for and answers it.
func (c *connection) handle(ctx context.Context, frame []byte) error {
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.ticket, err = c.claims.Lock(ctx, c.namespace, c.owner, c.abandon, resources)
	if err != nil {
		return err
	}
	held := false
	select {
	case <-c.ticket.Held():
		held = true
	default:
	}
	return c.send(c.session.lock(strconv.FormatInt(c.ticket.Number, 10), held))
}

func (c *connection) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.claims.Release(ctx, c.ticket); err != nil {
		return err
	}
	c.ticket = nil
	return c.send(c.session.release())
}

// disconnect leaves a lock that was not released to its abandon time-out.
func (c *connection) disconnect(ctx context.Context) {
	if c.ticket == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.claims.Disconnect(ctx, c.ticket)
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
	code := websocket.CloseInternalServerErr
	switch {
	case errors.As(err, &mistake), fault.Is(err, fault.Invalid):
		code = closeProtocol
	case errors.Is(err, errStopping):
		_ = c.sendClose(websocket.CloseGoingAway)
		return
	case errors.Is(err, errLost), isFault(err):
		c.log.WarnContext(ctx, "a connection ends", "namespace", c.namespace, "owner", c.owner, "err", err)
	default:
		return // the client closed, or cannot be reached
	}
	if c.sendText([]byte("communication error: "+textOf(err)), closeTimeout) == nil {
		_ = c.sendClose(code)
	}
}

func (c *connection) sendClose(code int) error {
	return c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(closeTimeout))
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

// read passes messages on until the connection fails or done is closed. It then reads
// what is left: closing a socket with unread bytes resets it, and the client would lose the
// last frames.
func (c *connection) read(messages chan<- received, done <-chan struct{}) {
	c.ws.SetPingHandler(func(text string) error {
		if err := c.noteFrame(); err != nil {
			return err
		}
		return c.ws.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(writeTimeout))
	})
	c.ws.SetPongHandler(func(string) error { return c.noteFrame() })
	for {
		frame, err := c.readMessage()
		select {
		case messages <- received{frame, err}:
		case <-done:
			err = errStopping
		}
		if err != nil {
			break
		}
	}
	<-done
	c.drain()
}

// drain reads until the client has closed, or serve closes the connection.
func (c *connection) drain() {
	for {
		_, _, err := c.ws.NextReader()
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return
		case err != nil: // also an error of before, such as a flood
			_, _ = io.Copy(io.Discard, c.ws.NetConn())
			return
		}
	}
}

// readMessage returns the next text or binary message, of any number of frames.
func (c *connection) readMessage() ([]byte, error) {
	if err := c.ws.SetReadDeadline(time.Now().Add(silenceTimeout)); err != nil {
		return nil, err
	}
	_, r, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	if !c.frames.Allow() {
		return nil, errFlood
	}
	frame, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err == nil && len(frame) > maxMessage {
		return nil, errTooLarge
	}
	return frame, err
}

// noteFrame counts a ping or a pong, and notes that the client is there.
func (c *connection) noteFrame() error {
	if !c.frames.Allow() {
		return errFlood
	}
	return c.ws.SetReadDeadline(time.Now().Add(silenceTimeout))
}
