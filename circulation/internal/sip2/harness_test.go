package sip2_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

const (
	date     = "20260105    101500"
	checkOut = "11NN" + date + "                  AOmain|AAP-1002|ABD-2003|"
	status   = "9900402.00"
	signIn   = "9300CNdesk-1|COdesk-1-password|"
	patience = 20 * time.Second // far longer than a busy host stands still
)

// handler answers requests of signed-in machines.
type handler = func(context.Context, library.Terminal, wire.Request) wire.Answer

// harness is a front with the terminals of a file.
type harness struct {
	t        *testing.T
	addr     string
	registry *prometheus.Registry
	drain    func() error
	others   *others
	reports  *reports
}

// setup is what a test changes of a harness.
type setup struct {
	settings  sip2.Settings
	limits    sip2.Limits
	terminals []map[string]any
	handlers  map[string]handler
	notReady  bool
}

func start(t *testing.T, change func(*setup)) *harness {
	t.Helper()
	s := setup{
		settings: sip2.Settings{Addr: "127.0.0.1:0", Tenant: "diku", NoBlock: "judge"}, limits: sip2.DefaultLimits(),
		terminals: []map[string]any{terminal("desk-1"), terminal("desk-2")},
		handlers:  map[string]handler{wire.CheckOut: lend, wire.PatronStatus: lend, wire.Hold: lend},
	}
	s.limits.Wrong, s.limits.Report = 0, 2*time.Millisecond
	change(&s)
	s.settings.TerminalFile = writeTerminals(t, s.terminals)
	if err := s.settings.Validate(); err != nil {
		t.Fatal(err)
	}
	log, registry := slog.New(slog.NewTextHandler(io.Discard, nil)), prometheus.NewRegistry()
	stored, reported := &others{}, &reports{}
	front, err := sip2.NewLimited(sip2.Options{
		Settings: s.settings, Handlers: s.handlers, Terminals: stored, Activity: reported, Patience: patience,
		Registry:     registry,
		Text:         func(_ context.Context, _ library.Terminal, _, code string) string { return code },
		ServicePoint: func(_ context.Context, idOrCode string) (string, error) { return idOrCode + "-id", nil },
		Ready: func(context.Context) error {
			if s.notReady {
				return fault.New(fault.Unavailable, "down")
			}
			return nil
		},
		Panics: web.NewPanics(registry, log), Log: log, ShutdownTimeout: 10 * time.Second,
		Now: func() time.Time { return time.Date(2026, 1, 5, 10, 15, 0, 0, time.Local) },
	}, s.limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := front.Listener.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var workers sync.WaitGroup
	for _, w := range front.Workers {
		workers.Go(func() { w.Run(working) })
	}
	served := make(chan error, 1)
	go func() { served <- front.Listener.Serve(t.Context()) }()
	drain := sync.OnceValue(func() error {
		err := front.Listener.Drain(context.Background())
		if serveErr := <-served; err == nil {
			err = serveErr
		}
		stop()
		workers.Wait()
		return err
	})
	t.Cleanup(func() {
		if err := drain(); err != nil {
			t.Error(err)
		}
	})
	return &harness{t: t, addr: front.Listener.URL(), registry: registry, drain: drain, others: stored, reports: reported}
}

func terminal(login string) map[string]any {
	hash, err := bcrypt.GenerateFromPassword([]byte(login+"-password"), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"login": login, "name": "Hall", "tenant": "diku", "institution": "main",
		"servicePointId": "bbc823fa-06e7-42c6-87b5-605a5da22f15",
		"libraryName":    "Main Library", "passwordHash": string(hash),
	}
}

func writeTerminals(t *testing.T, terminals any) string {
	t.Helper()
	content, err := json.Marshal(terminals)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "terminals.json")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// lend answers any request as lent.
func lend(_ context.Context, t library.Terminal, r wire.Request) wire.Answer {
	a := wire.NewAnswer("12", "1NUY", date)
	a.Add("AO", r.Institution(t.Institution))
	a.Add("AA", r.Field("AA"))
	return a
}

// others stands in for storage, with one terminal that a test can remove.
type others struct {
	mu       sync.Mutex
	terminal *library.Terminal
	password string                // "" for any
	wait     func(context.Context) // before the terminal is read; may be nil
	down     bool
}

func (o *others) set(t *library.Terminal, down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.terminal, o.down = t, down
}

func (o *others) Terminal(ctx context.Context, login string) (library.Terminal, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait != nil {
		o.wait(ctx)
	}
	switch {
	case o.down:
		return library.Terminal{}, fault.New(fault.Unavailable, "down")
	case o.terminal == nil || o.terminal.Login != login:
		return library.Terminal{}, fault.New(fault.NotFound, "none")
	}
	return *o.terminal, nil
}

func (o *others) VerifyTerminal(ctx context.Context, login, password string) (library.Terminal, error) {
	if o.password != "" && password != o.password {
		return library.Terminal{}, fault.New(fault.LoginRefused, "Wrong password")
	}
	return o.Terminal(ctx, login)
}

// machine is a client. Its read time-out is far longer than any answer.
type machine struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (h *harness) connect() *machine {
	h.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(h.t.Context(), "tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	return newMachine(h.t, conn)
}

func newMachine(t *testing.T, conn net.Conn) *machine {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &machine{t, conn, bufio.NewReader(conn)}
}

// signedIn is a machine after its login.
func (h *harness) signedIn() *machine {
	h.t.Helper()
	m := h.connect()
	m.expect(signIn, "941")
	return m
}

func (m *machine) send(line string) {
	m.t.Helper()
	if _, err := io.WriteString(m.conn, line); err != nil {
		m.t.Fatal(err)
	}
}

// ask sends a line and returns the answer, up to CR.
func (m *machine) ask(line string) string {
	m.t.Helper()
	m.send(line + "\r")
	return m.read()
}

func (m *machine) read() string {
	m.t.Helper()
	answer, err := m.in.ReadString('\r')
	if err != nil {
		m.t.Fatalf("after %q: %v", answer, err)
	}
	return strings.TrimSuffix(answer, "\r")
}

func (m *machine) expect(line, want string) {
	m.t.Helper()
	if got := m.ask(line); got != want {
		m.t.Errorf("%q was answered with\n%q, want\n%q", line, got, want)
	}
}

// expectEnd waits until the service ends the connection.
func (m *machine) expectEnd() {
	m.t.Helper()
	if rest, err := io.ReadAll(m.in); err != nil || len(rest) > 0 {
		m.t.Errorf("got %q, %v, want the end of the connection", rest, err)
	}
}

// count returns a metric, summed over the labels that are not named.
func (h *harness) count(name string, labels ...string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var shown []string
			for _, label := range metric.GetLabel() {
				shown = append(shown, label.GetValue())
			}
			if strings.Contains(fmt.Sprint(shown), strings.Join(labels, " ")) {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// waitFor waits until the condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s does not come", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
