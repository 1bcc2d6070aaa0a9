package sip2

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// Limits are the times of a connection that tests shorten.
type Limits struct {
	Idle, Login, Line, Wrong, Resend, Report time.Duration

	MaxConns int
}

// DefaultLimits are those of New.
func DefaultLimits() Limits {
	l := defaultLimits()
	return Limits{l.idle, l.login, l.line, l.wrong, l.resend, reportInterval, l.maxConns}
}

// NewLimited is New with other limits.
func NewLimited(o Options, limits Limits) (web.Front, error) {
	l, err := newListener(o)
	if err != nil {
		return web.Front{}, err
	}
	l.idle, l.login, l.line, l.wrong, l.resend = limits.Idle, limits.Login, limits.Line, limits.Wrong, limits.Resend
	l.maxConns, l.activity.interval = limits.MaxConns, limits.Report
	return l.front(), nil
}

// Admits reports whether a terminal of these addresses may connect from an address.
func Admits(addresses []string, from netip.Addr) bool {
	return admits(library.Terminal{Addresses: addresses}, from)
}

// Keeps reports whether a repeat of r gets the answer a after d.
func Keeps(r wire.Request, a wire.Answer, d time.Duration) bool {
	var k kept
	now := time.Now()
	k.keep(r, a, []byte(a.Code), now)
	_, is := k.find(r, now.Add(d))
	return is
}

// Activity is what terminals do, without connections.
type Activity struct{ a *activity }

// NewActivity returns one that does not run.
func NewActivity(store ActivityStore, log *slog.Logger) Activity {
	return Activity{newActivity(store, log)}
}

// Answered notes a message of a terminal, and counts it if it was refused.
func (a Activity) Answered(tenant okapi.Tenant, login, code string, refused bool) {
	key := activeKey{tenant, login}
	if refused {
		a.a.count(key, schemas.TerminalCounts{Refused: 1})
	}
	a.a.answered(key, code)
}

// KeepNote keeps a note about a message.
func (a Activity) KeepNote(tenant okapi.Tenant, login string, r wire.Request, n schemas.TerminalNote) {
	a.a.keepNote(activeKey{tenant, login}, r, n)
}

// Take takes the report of a round that begins at a time.
func (a Activity) Take(now time.Time) (schemas.TerminalReport, bool) {
	_, sent, report := a.a.takeReport(now, now)
	return report, sent != nil
}

// ReportAll sends what is due.
func (a Activity) ReportAll(ctx context.Context) { a.a.reportAll(ctx, roundTimeout) }

// Count returns how many terminals are watched, and how many notes wait.
func (a Activity) Count() (terminals, notes int) { return len(a.a.terminals), len(a.a.notes) }
