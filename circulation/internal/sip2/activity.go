package sip2

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
	"checkoutlock/schemas/redact"
)

const (
	// reportInterval is between two rounds of reports.
	reportInterval = 5 * time.Second
	// connectedInterval is how often a terminal is reported that stays connected and does nothing.
	// Storage lets a connection count for three times as long.
	connectedInterval = schemas.TerminalCountsMs / 3 * time.Millisecond
	// reportTimeout bounds one report, and the last ones at the stop; roundTimeout bounds all reports of
	// one turn.
	reportTimeout = 2 * time.Second
	roundTimeout  = 20 * time.Second
	// slotLength is how long events are counted in one slot.
	slotLength = schemas.TerminalSlotMinutes * time.Minute
	// maxActive bounds the terminals that are watched, and maxNotes the notes that are kept while
	// storage is away.
	maxActive = 4000
	maxNotes  = 1000
)

// ActivityStore keeps what terminals of the tenant in ctx do.
type ActivityStore interface {
	// ReportTerminals keeps the report of this instance. Faults of a report that is never accepted:
	// Invalid, Malformed, UnknownTenant, TooLarge.
	ReportTerminals(ctx context.Context, report schemas.TerminalReport) error
}

// activity is what the terminals of this instance do. It reports them to storage, where the staff
// pages of all instances find it. It is safe for concurrent use.
type activity struct {
	store    ActivityStore
	log      *slog.Logger
	interval time.Duration

	mu        sync.Mutex
	terminals map[activeKey]*active
	notes     []note // oldest first
	failing   bool   // the last report failed
}

// activeKey names a terminal.
type activeKey struct {
	tenant okapi.Tenant
	login  string
}

// active is a terminal that is connected, or was in the last hour.
type active struct {
	connections []*connection // the newest last
	lastMessage string
	lastAt      time.Time
	attention   string
	counts      [schemas.TerminalSlots]schemas.TerminalCounts // the current slot first
	slotBegan   time.Time                                     // of the current one
	changed     bool                                          // since the last report
	reportedAt  time.Time
}

// note is a note for staff that storage does not have yet.
type note struct {
	tenant okapi.Tenant
	at     time.Time
	schemas.TerminalNote
}

func newActivity(store ActivityStore, log *slog.Logger) *activity {
	return &activity{store: store, log: log, interval: reportInterval, terminals: map[activeKey]*active{}}
}

// change runs f on a terminal, unless there are too many.
func (a *activity) change(key activeKey, f func(t *active)) {
	if key.login == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t, known := a.terminals[key]
	if !known {
		if len(a.terminals) >= maxActive {
			return
		}
		t = &active{slotBegan: time.Now()}
		a.terminals[key] = t
	}
	f(t)
	t.changed = true
}

// arrive notes that a connection is the terminal's.
func (a *activity) arrive(key activeKey, c *connection) {
	a.change(key, func(t *active) { t.connections = append(t.connections, c) })
}

// leave notes that it is no longer.
func (a *activity) leave(key activeKey, c *connection) {
	a.change(key, func(t *active) {
		t.connections = slices.DeleteFunc(t.connections, func(other *connection) bool { return other == c })
	})
}

// answered notes a message.
func (a *activity) answered(key activeKey, code string) {
	a.change(key, func(t *active) { t.lastMessage, t.lastAt = code, time.Now() })
}

// count adds to what the current slot counts.
func (a *activity) count(key activeKey, n schemas.TerminalCounts) {
	a.change(key, func(t *active) {
		t.turn(time.Now())
		t.counts[0].Add(n)
	})
}

// turn begins the slots up to now.
func (t *active) turn(now time.Time) {
	for i := 0; i < schemas.TerminalSlots && now.Sub(t.slotBegan) >= slotLength; i++ {
		copy(t.counts[1:], t.counts[:])
		t.counts[0] = schemas.TerminalCounts{}
		t.slotBegan = t.slotBegan.Add(slotLength)
	}
	if now.Sub(t.slotBegan) >= slotLength { // the terminal was silent for hours
		t.counts, t.slotBegan = [schemas.TerminalSlots]schemas.TerminalCounts{}, now
	}
}

// attend notes what a machine says of itself.
func (a *activity) attend(key activeKey, attention string) {
	a.change(key, func(t *active) { t.attention = attention })
}

// keepNote keeps a note for staff until storage has it. Its id is the same for a repeat of the message
// on the same day, at any instance. A repeat that may have made another loan, as the first one was given
// up, has a note of its own.
func (a *activity) keepNote(key activeKey, r wire.Request, n schemas.TerminalNote) {
	now := time.Now()
	name := key.tenant.String() + "\x00" + key.login + "\x00" + n.Kind + "\x00" + now.UTC().Format(time.DateOnly) + "\x00" + r.Body() + n.LoanID
	n.ID, n.Login = uuid.NewSHA1(uuid.Nil, []byte(name)).String(), key.login
	for _, text := range []*string{&n.Code, &n.UserBarcode, &n.ItemBarcode} {
		*text, _ = redact.Cut(*text, schemas.MaxHistoryText)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.notes) >= maxNotes {
		a.notes = a.notes[1:] // the log has it
	}
	a.notes = append(a.notes, note{key.tenant, now, n})
}

// Run is a worker: it reports until ctx is done, and then once more.
func (a *activity) Run(ctx context.Context) {
	for range pace.Every(ctx, a.interval, a.interval) {
		a.reportAll(ctx, roundTimeout)
	}
	a.reportAll(context.WithoutCancel(ctx), reportTimeout)
}

// reportAll reports what is due, each terminal once. While storage is away, it stops at the first
// report.
func (a *activity) reportAll(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for began := time.Now(); ctx.Err() == nil; {
		tenant, sent, report := a.takeReport(began, time.Now())
		if sent == nil {
			return
		}
		err := a.send(ctx, tenant, report)
		a.noteSent(ctx, sent, err)
		if err != nil && !isNeverAccepted(err) {
			return
		}
	}
}

func (a *activity) send(ctx context.Context, tenant okapi.Tenant, report schemas.TerminalReport) (err error) {
	defer fault.Recover(&err)
	ctx, cancel := context.WithTimeout(okapi.WithTenant(ctx, tenant), reportTimeout)
	defer cancel()
	return a.store.ReportTerminals(ctx, report) //nolint:wrapcheck // storage's fault
}

// sentReport is what a report under way has.
type sentReport struct {
	terminals []*active
	notes     []note
}

// takeReport makes the next report of a round, for one tenant; nil if nothing is due. It forgets
// terminals that were silent for an hour.
func (a *activity) takeReport(began, now time.Time) (okapi.Tenant, *sentReport, schemas.TerminalReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var tenant okapi.Tenant
	var report schemas.TerminalReport
	sent := &sentReport{}
	isOther := func(of okapi.Tenant) bool { return len(sent.notes)+len(sent.terminals) > 0 && of != tenant }
	a.notes = slices.DeleteFunc(a.notes, func(n note) bool {
		if isOther(n.tenant) || len(report.Notes) == schemas.MaxReportedNotes {
			return false
		}
		tenant = n.tenant
		n.AgoMs = min(now.Sub(n.at).Milliseconds(), schemas.MaxHistoryMs)
		sent.notes, report.Notes = append(sent.notes, n), append(report.Notes, n.TerminalNote)
		return true
	})
	for key, t := range a.terminals {
		due := t.changed && t.reportedAt.Before(began) || len(t.connections) > 0 && now.Sub(t.reportedAt) >= connectedInterval
		if !due && len(t.connections) == 0 && now.Sub(t.lastAt) > time.Hour && now.Sub(t.slotBegan) > time.Hour {
			delete(a.terminals, key)
		}
		if !due || isOther(key.tenant) || len(report.Terminals) == schemas.MaxReportedTerminals {
			continue
		}
		tenant = key.tenant
		report.Terminals = append(report.Terminals, t.describe(key.login, now))
		sent.terminals = append(sent.terminals, t)
		t.changed, t.reportedAt = false, now
	}
	if len(sent.notes)+len(sent.terminals) == 0 {
		return tenant, nil, report
	}
	return tenant, sent, report
}

func (t *active) describe(login string, now time.Time) schemas.TerminalState {
	t.turn(now)
	s := schemas.TerminalState{
		Login: login, Connections: len(t.connections), LastMessage: t.lastMessage, Attention: t.attention, Counts: slices.Clone(t.counts[:]),
	}
	if n := len(t.connections); n > 0 {
		newest := t.connections[n-1]
		s.Address, s.ConnectedMs = newest.from.String(), now.Sub(newest.began).Milliseconds()
	}
	if t.lastMessage != "" {
		s.LastMs = now.Sub(t.lastAt).Milliseconds()
	}
	return s
}

// noteSent takes back what did not reach storage. What storage will never accept is dropped.
func (a *activity) noteSent(ctx context.Context, sent *sentReport, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.failing = false
		return
	}
	if !isNeverAccepted(err) {
		for _, t := range sent.terminals {
			t.changed = true
		}
		a.notes = append(sent.notes, a.notes...)
		a.notes = a.notes[max(0, len(a.notes)-maxNotes):]
	}
	if !a.failing {
		a.log.WarnContext(ctx, "what machines do was not reported: the staff page does not show it", "err", err)
	}
	a.failing = true
}

func isNeverAccepted(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Malformed, fault.UnknownTenant, fault.TooLarge:
		return true
	default:
		return false
	}
}
