// Package sip2 lets self-check machines speak SIP2 with circulation. It keeps their connections,
// signs them in, and sends each message to its handler. It answers a message that is sent again
// like the first one.
package sip2

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/pace"
	"checkoutlock/web"
	"checkoutlock/web/texts"
)

// maxConnections bounds the connections of one process. An idle one takes about 10 KB.
const maxConnections = 2000

// Options configure New. All fields are required.
type Options struct {
	Settings Settings // valid; without an address the front is off
	// Handlers answer the requests of signed-in machines, by the code of the request. Their context
	// has the tenant and the machine's deadline, and does not end if the machine hangs up.
	Handlers map[string]func(context.Context, library.Terminal, wire.Request) wire.Answer
	// Text says a text of package texts at a terminal. language is a number of SIP2.
	Text func(ctx context.Context, t library.Terminal, language, code string) string
	// Terminals has the logins that the file lacks.
	Terminals Terminals
	// Activity keeps what terminals do, for the staff pages.
	Activity ActivityStore
	// ServicePoint returns the id of the service point with this id or code. Fault: NotFound.
	ServicePoint func(ctx context.Context, idOrCode string) (string, error)
	// Patience is that of terminals without their own.
	Patience time.Duration
	// Ready reports why check-outs would fail, nil if they would not.
	Ready    func(ctx context.Context) error
	Registry prometheus.Registerer
	Panics   *web.Panics
	Log      *slog.Logger
	Now      func() time.Time
	// ShutdownTimeout bounds the running messages after the listener has closed.
	ShutdownTimeout time.Duration
}

// limits are the times of a connection.
type limits struct {
	idle     time.Duration // without a message
	login    time.Duration // until the machine signs in
	line     time.Duration // for the rest of a message
	write    time.Duration // for an answer
	wrong    time.Duration // until a wrong login is answered
	turn     time.Duration // until a login is verified, with its wait for others
	resend   time.Duration // after which a machine may have sent its message again
	maxConns int
}

func defaultLimits() limits {
	return limits{
		idle: 15 * time.Minute, login: 30 * time.Second, line: 30 * time.Second, write: 10 * time.Second,
		wrong: 500 * time.Millisecond, turn: 20 * time.Second, resend: 900 * time.Millisecond, maxConns: maxConnections,
	}
}

// listener accepts machines, a web.Listener.
type listener struct {
	Options
	limits
	terminals Terminals
	metrics   *metrics
	flights   *flights
	brake     *brake
	activity  *activity

	ln       net.Listener
	stopping context.Context //nolint:containedctx // done once Drain is called
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu          sync.Mutex
	connections map[*connection]struct{}
}

// New returns the front, and registers its metrics.
func New(o Options) (web.Front, error) {
	if o.Settings.Addr == "" {
		return web.Front{}, nil
	}
	l, err := newListener(o)
	if err != nil {
		return web.Front{}, err
	}
	return l.front(), nil
}

func (l *listener) front() web.Front {
	return web.Front{Name: "sip2", Listener: l, Workers: []web.Worker{{Name: "sip2 activity", Run: l.activity.Run}}}
}

func newListener(o Options) (*listener, error) {
	filed, err := readTerminals(o.Settings)
	if err != nil {
		return nil, err
	}
	o.Log = o.Log.With("front", "sip2")
	o.Panics.Expect("sip2")
	m := newMetrics(o.Registry, o.Handlers)
	stopping, stop := context.WithCancel(context.Background())
	return &listener{
		Options: o, limits: defaultLimits(), terminals: terminalFile{filed, o.Terminals}, metrics: m,
		flights:  &flights{running: map[flightKey]*flight{}},
		activity: newActivity(o.Activity, o.Log),
		brake: &brake{
			wrong: cache.New[string, int](brakeAge, brakeSize), slots: make(chan struct{}, verifications),
			turns: cache.New[string, chan struct{}](brakeAge, brakeSize),
		},
		stopping: stopping, stop: stop,
		connections: map[*connection]struct{}{},
	}, nil
}

// Listen implements web.Listener.
func (l *listener) Listen(ctx context.Context) error {
	probes := net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}
	ln, err := (&net.ListenConfig{KeepAliveConfig: probes}).Listen(ctx, "tcp", l.Settings.Addr)
	if err != nil {
		return fmt.Errorf("listening on %s (SIP2_ADDR chooses another address): %w", l.Settings.Addr, err)
	}
	if l.Settings.usesTLS() {
		ln = tls.NewListener(ln, l.Settings.tlsConfig())
	}
	l.ln = ln
	return nil
}

// URL implements web.Listener: host:port.
func (l *listener) URL() string { return l.ln.Addr().String() }

// Serve implements web.Listener.
func (l *listener) Serve(ctx context.Context) error {
	l.Log.InfoContext(ctx, "serving SIP2", "addr", l.URL(), "tls", l.Settings.usesTLS())
	ctx = context.WithoutCancel(ctx)
	for {
		conn, err := l.ln.Accept()
		switch {
		case err == nil:
			l.admit(ctx, conn)
		case l.isStopping():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serving SIP2: %w", err)
		default: // such as too many open files
			l.Log.WarnContext(ctx, "a connection was not accepted", "err", err)
			pace.Wait(l.stopping, time.Second)
		}
	}
}

func (l *listener) isStopping() bool { return l.stopping.Err() != nil }

// admit serves the connection, unless it is one too many.
func (l *listener) admit(ctx context.Context, conn net.Conn) {
	c := newConnection(l, conn)
	l.mu.Lock()
	if l.isStopping() { // Drain, which holds mu meanwhile, waits for no more
		l.mu.Unlock()
		_ = conn.Close() // nothing was sent
		return
	}
	full := len(l.connections) >= l.maxConns
	if !full {
		l.connections[c] = struct{}{}
		l.running.Add(1)
	}
	l.mu.Unlock()
	l.metrics.countConnection(!full)
	if full {
		l.Log.WarnContext(ctx, "a connection is one too many", "limit", l.maxConns, "from", c.from)
		_ = conn.Close() // nothing was sent
		return
	}
	go func() {
		defer l.running.Done()
		defer l.forget(c)
		defer c.leave()
		c.serve(ctx)
	}()
}

func (l *listener) forget(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.connections, c)
	l.metrics.connections.Dec()
}

// Drain implements web.Listener. Connections finish their message, and then close.
func (l *listener) Drain(ctx context.Context) error {
	l.stop()
	err := l.ln.Close()
	l.interrupt(func(c *connection) { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return err //nolint:wrapcheck // of a listener
	case <-time.After(l.ShutdownTimeout):
		l.interrupt(func(c *connection) { _ = c.conn.Close() })
		l.Log.WarnContext(ctx, "running messages of machines were cut off", "after", l.ShutdownTimeout)
		return fmt.Errorf("running messages of SIP2 were cut off after %s", l.ShutdownTimeout)
	}
}

func (l *listener) interrupt(end func(*connection)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.connections {
		end(c)
	}
}

// patience is how long the machine waits for an answer.
func (l *listener) patience(t library.Terminal) time.Duration {
	if t.PatienceMs > 0 {
		return time.Duration(t.PatienceMs) * time.Millisecond
	}
	return l.Patience
}

// complete fills in what the terminal leaves to the service.
func (l *listener) complete(t library.Terminal) library.Terminal {
	t.PatienceMs = policy.WholeNumber(l.patience(t).Milliseconds())
	if t.TimeZone == "" {
		t.TimeZone = time.Local.String()
	}
	if t.NoBlock == "" {
		t.NoBlock = l.Settings.NoBlock
	}
	return t
}

// say returns a text for a terminal.
func (l *listener) say(ctx context.Context, t library.Terminal, r wire.Request, code texts.Code) string {
	return l.Text(ctx, t, r.Spoken(), string(code))
}
