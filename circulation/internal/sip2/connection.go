package sip2

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/redact"
	"checkoutlock/web/texts"
)

const (
	// maxMalformed is how many lines in a row may be no message. A machine may send the same one
	// for ever.
	maxMalformed = 10
	// margin is what a machine's patience exceeds the deadline of its messages by.
	margin = 500 * time.Millisecond
	// lingerTime and lingerBytes bound what is read after the last answer.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
	// refreshTimeout bounds the look at the terminal's record before a message. That takes no more than
	// half of the message's time.
	refreshTimeout = time.Second
)

// connection is one machine.
type connection struct {
	*listener
	conn  net.Conn
	from  netip.Addr
	began time.Time
	in    *wire.Reader

	// terminal is the signed-in machine of tenant; login is "" without one.
	login    string
	tenant   okapi.Tenant
	terminal library.Terminal
	// servicePoint is what the machine named when it signed in, and password what it proved.
	servicePoint, password string
	loginBy                time.Time // when the connection ends without a login
	printWidth             int       // of the last 99; 0 for none

	last        []byte // the last answer, without the end of the line
	kept        kept
	patron      string // of the last 23 or 63
	language    string // of that patron, in SIP2
	malformed   int    // lines in a row
	wrongLogins int
}

func newConnection(l *listener, conn net.Conn) *connection {
	now := time.Now()
	c := &connection{listener: l, conn: conn, began: now, in: wire.NewReader(conn), loginBy: now.Add(l.login)}
	if addr, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.from = addr.Addr().Unmap()
	}
	return c
}

// serve answers messages until the machine leaves, or is cut off.
func (c *connection) serve(ctx context.Context) {
	defer c.conn.Close()
	err := c.serveSafely(ctx)
	if p, is := errors.AsType[*fault.PanicError](err); is {
		c.Panics.Note(ctx, "sip2", p)
	}
	level := slog.LevelInfo
	if errors.Is(err, io.EOF) || c.isStopping() {
		level = slog.LevelDebug
	}
	c.Log.Log(ctx, level, "a machine's connection ended", "terminal", c.login, "from", c.from, "reason", err)
}

// serveSafely makes a panic an error. It returns why the connection ends.
func (c *connection) serveSafely(ctx context.Context) (err error) {
	defer fault.Recover(&err)
	if err := c.loginUnasked(ctx); err != nil {
		return err
	}
	for {
		line, err := c.read()
		if errors.Is(err, wire.ErrTooLong) {
			return errors.Join(err, c.write(wire.AskAgain(false)), c.linger())
		}
		if err != nil {
			return err
		}
		if err := c.answerApart(ctx, line); err != nil {
			return err
		}
	}
}

// answerApart answers a message in a goroutine of its own, and waits for it. A check-out grows the stack
// to 32 kB, which a connection would keep while it is idle.
func (c *connection) answerApart(ctx context.Context, line []byte) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer fault.Recover(&err)
		err = c.answer(ctx, line)
	}()
	<-done
	return err
}

// read waits for a message. The time until it begins and the time until it ends are bounded.
func (c *connection) read() ([]byte, error) {
	until := time.Now().Add(c.idle)
	if c.login == "" && c.loginBy.Before(until) {
		until = c.loginBy
	}
	if err := c.readUntil(until); err != nil {
		return nil, err
	}
	if err := c.in.Await(); err != nil {
		return nil, err //nolint:wrapcheck // the connection's
	}
	if err := c.readUntil(time.Now().Add(c.line)); err != nil {
		return nil, err
	}
	return c.in.Line() //nolint:wrapcheck // the connection's
}

var errStopping = errors.New("the service stops")

// readUntil sets the deadline of reads, unless Drain has set it.
func (c *connection) readUntil(until time.Time) error {
	err := c.conn.SetReadDeadline(until)
	if c.isStopping() {
		return errStopping
	}
	return err //nolint:wrapcheck // the connection's
}

// write sends a line with the terminal's end.
func (c *connection) write(line []byte) error {
	end := "\r"
	switch c.terminal.LineEnd {
	case "crlf":
		end = "\r\n"
	case "lf":
		end = "\n"
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.listener.write)); err != nil {
		return err //nolint:wrapcheck // the connection's
	}
	_, err := c.conn.Write(append(line[:len(line):len(line)], end...))
	return err //nolint:wrapcheck // the connection's
}

// linger ends the connection while the machine sends, so that it reads the last answer: a close with
// unread bytes would take that away.
func (c *connection) linger() error {
	half, can := c.conn.(interface{ CloseWrite() error })
	if !can {
		return nil
	}
	err := errors.Join(half.CloseWrite(), c.readUntil(time.Now().Add(lingerTime)))
	if err == nil {
		_, err = io.CopyN(io.Discard, c.conn, lingerBytes)
	}
	return err
}

// answer answers one line. Its error ends the connection.
func (c *connection) answer(ctx context.Context, line []byte) error {
	began := time.Now()
	ctx = okapi.NewContext(ctx, okapi.Call{Tenant: c.tenant, RequestID: uuid.NewString()})
	gone := c.refresh(ctx)
	r, err := wire.Parse(line, wire.CharacterSet(c.terminal.CharacterSet), wire.Detection(c.terminal.ErrorDetection))
	if err != nil {
		return c.askAgain(ctx, err)
	}
	if r.Code == wire.Resend && c.last == nil {
		return c.askAgain(ctx, &wire.MalformedError{Checked: r.Checked, Reason: "nothing to send again"})
	}
	c.malformed = 0
	r = c.remember(r)
	var a wire.Answer
	sent, repeated := c.last, r.Code == wire.Resend
	if !repeated {
		if sent, repeated = c.kept.find(r, began); !repeated {
			a, sent, repeated = c.handle(ctx, r, began)
		}
	}
	c.last = sent
	c.note(ctx, r, a, repeated, time.Since(began))
	if time.Since(began) > c.resend {
		c.skipRepeats(line)
	}
	if c.wrongLogins >= maxWrongLogins {
		gone = errors.Join(gone, errWrongLogins)
	}
	return errors.Join(c.write(sent), gone)
}

// remember keeps the language that a question about a patron names, and gives it to what follows for
// the same patron.
func (c *connection) remember(r wire.Request) wire.Request {
	switch r.Code {
	case wire.PatronStatus, wire.PatronInformation:
		c.patron, c.language = r.Field("AA"), r.Language()
	case wire.Login, wire.EndSession:
		defer func() { c.patron, c.language = "", "" }()
	}
	if c.patron == "" || r.Field("AA") != c.patron {
		return r
	}
	return r.In(c.language)
}

// handle answers a request that is new on the connection, and was read when it began.
func (c *connection) handle(ctx context.Context, r wire.Request, began time.Time) (a wire.Answer, line []byte, repeated bool) {
	limited, cancel := context.WithDeadline(ctx, began.Add(c.answerWithin()))
	defer cancel()
	switch r.Code {
	case wire.Login:
		a = c.signIn(ctx, r) // it may wait for its turn, longer than the machine does
	case wire.MachineStatus:
		a = c.describeService(limited, r)
	default:
		a = c.dispatch(limited, r)
	}
	if c.terminal.PrintTexts {
		a.Print(c.printWidth)
	}
	line, repeated = c.kept.keep(r, a, a.Encode(r, wire.CharacterSet(c.terminal.CharacterSet)), began)
	return a, line, repeated
}

// answerWithin is how long a message may take from when it was read.
func (c *connection) answerWithin() time.Duration { return c.patience(c.terminal) - margin }

// dispatch sends a request to its handler, if the machine may send it.
func (c *connection) dispatch(ctx context.Context, r wire.Request) wire.Answer {
	handler, served := c.Handlers[r.Code]
	other := r.Field("AO") != "" && c.terminal.Institution != "" && r.Field("AO") != c.terminal.Institution
	switch {
	case c.login == "":
		return c.refuse(ctx, r, texts.MachineNotSignedIn)
	case !served || !c.terminal.Allows(r.Code):
		return c.refuse(ctx, r, texts.MachineNotServed)
	case other && c.terminal.InstitutionCheck == "strict":
		return c.refuse(ctx, r, texts.MachineOtherLibrary)
	case other:
		c.Log.DebugContext(ctx, "a machine names another institution", "terminal", c.login)
	}
	if refusal, wrong := c.refuseMachine(ctx, r); wrong {
		return refusal
	}
	same := *c // the connection may go on before the work ends
	handle := func() wire.Answer {
		a := same.slowGuesses(ctx, r, func() wire.Answer { return same.handleSafely(ctx, r, handler) })
		if a.Note != nil {
			same.activity.keepNote(same.key(), r, *a.Note)
		}
		if a.Repeated {
			same.countRepeat()
		}
		return a
	}
	if !changesRecords(r.Code) {
		return handle()
	}
	key := flightKey{c.tenant.String(), c.login, sha256.Sum256([]byte(r.Body()))}
	a, ended := c.flights.do(ctx, key, c.running.Go, handle, c.countRepeat)
	if !ended {
		return c.refuseBusy(ctx, r)
	}
	return a
}

// handleSafely makes a panic an answer.
func (c *connection) handleSafely(ctx context.Context, r wire.Request,
	handler func(context.Context, library.Terminal, wire.Request) wire.Answer,
) (a wire.Answer) {
	var err error
	defer func() {
		if err != nil {
			c.Panics.Note(ctx, "sip2", err)
			a = c.refuse(ctx, r, texts.MachineUnavailable)
			a.Result, a.Reason = wire.Failed, "panic"
		}
	}()
	defer fault.Recover(&err)
	return handler(ctx, c.terminal, r)
}

// refuse returns the message's own refusal with a text.
func (c *connection) refuse(ctx context.Context, r wire.Request, code texts.Code) wire.Answer {
	a := wire.Refusal(r, c.terminal.Institution, c.now(), c.say(ctx, c.terminal, r, code))
	a.Reason = string(code)
	return a
}

// refuseBusy refuses a message that may be sent again.
func (c *connection) refuseBusy(ctx context.Context, r wire.Request) wire.Answer {
	a := c.refuse(ctx, r, texts.MachineTryAgain)
	a.Result = wire.Busy
	return a
}

// now is the time in the terminal's zone.
func (c *connection) now() time.Time {
	zone, err := time.LoadLocation(c.terminal.TimeZone)
	if err != nil || c.login == "" {
		zone = time.Local
	}
	return c.Now().In(zone)
}

var errTooMalformed = errors.New("too many lines in a row were no message")

// askAgain answers a line that is no request.
func (c *connection) askAgain(ctx context.Context, err error) error {
	malformed, _ := errors.AsType[*wire.MalformedError](err)
	c.metrics.countMalformed(malformed.Reason)
	c.activity.count(c.key(), schemas.TerminalCounts{Unreadable: 1})
	c.Log.InfoContext(ctx, "a machine sent what is no message", "terminal", c.login, "from", c.from, "reason", malformed.Reason)
	c.malformed++
	err = c.write(wire.AskAgain(malformed.Checked))
	if c.malformed >= maxMalformed {
		err = errors.Join(errTooMalformed, err)
	}
	return err
}

// skipRepeats drops messages that the machine sent again while the first one was in work: it waits
// for one answer.
func (c *connection) skipRepeats(line []byte) {
	if c.readUntil(time.Now().Add(time.Millisecond)) != nil {
		return
	}
	for c.in.Skip(line) {
		c.countRepeat()
	}
}

func (c *connection) countRepeat() {
	c.metrics.repeats.Inc()
	c.activity.count(c.key(), schemas.TerminalCounts{Repeated: 1})
}

// note counts and logs an answered message.
func (c *connection) note(ctx context.Context, r wire.Request, a wire.Answer, repeated bool, took time.Duration) {
	result := string(a.Result)
	switch {
	case a.Repeated: // and counted
		result = "repeated"
	case repeated:
		result = "repeated"
		c.countRepeat()
	case a.Result != wire.OK:
		c.activity.count(c.key(), schemas.TerminalCounts{Refused: 1})
	case r.Code == wire.CheckOut:
		c.activity.count(c.key(), schemas.TerminalCounts{CheckOuts: 1})
	}
	c.metrics.observe(r.Code, result, took)
	c.activity.answered(c.key(), r.Code)
	attrs := []slog.Attr{
		slog.String("message", r.Code), slog.String("terminal", c.login), slog.String("result", result),
		slog.Float64("took_ms", schemas.Milliseconds(took)),
	}
	if a.Reason != "" {
		attrs = append(attrs, slog.String("reason", a.Reason))
	}
	if patron := r.Field("AA"); patron != "" {
		attrs = append(attrs, slog.String("patron", redact.Mask(patron)))
	}
	c.Log.LogAttrs(ctx, slog.LevelInfo, "message", attrs...)
}
