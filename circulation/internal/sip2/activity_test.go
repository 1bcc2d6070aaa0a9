package sip2_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// reports is a storage for what terminals do.
type reports struct {
	mu    sync.Mutex
	state map[string]schemas.TerminalState // by login
	notes []schemas.TerminalNote
	sizes []int // terminals in each report
	err   error
	also  func() // happens meanwhile; nil for nothing
}

func (s *reports) ReportTerminals(ctx context.Context, r schemas.TerminalReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := okapi.TenantFrom(ctx); err != nil || s.err != nil {
		return s.err
	}
	if s.state == nil {
		s.state = map[string]schemas.TerminalState{}
	}
	for _, t := range r.Terminals {
		s.state[t.Login] = t
	}
	s.notes, s.sizes = append(s.notes, r.Notes...), append(s.sizes, len(r.Terminals))
	if s.also != nil {
		s.also()
	}
	return nil
}

func (s *reports) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// is reports whether the last state of a terminal is as wanted.
func (s *reports) is(login string, wanted func(schemas.TerminalState) bool) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return wanted(s.state[login])
	}
}

func TestActivity_ReportsWhatATerminalDoes(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.handlers[wire.CheckOut] = func(_ context.Context, _ library.Terminal, r wire.Request) wire.Answer {
			a := wire.Refusal(r, "main", time.Now(), "no")
			a.Note = &schemas.TerminalNote{Kind: schemas.NoteCancelled, ItemBarcode: strings.Repeat("é", 300)}
			return a
		}
	})
	first := h.signedIn()
	waitFor(t, "the login", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return s.Connections == 1 && s.Address == "127.0.0.1" && s.LastMessage == wire.Login
	}))
	second := h.signedIn()
	second.ask(checkOut)
	second.ask(checkOut) // a repeat, which is no second refusal
	second.ask("9910402.00")
	second.ask("rubbish")
	waitFor(t, "what was counted", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return s.Connections == 2 && s.LastMessage == wire.MachineStatus && s.Attention == schemas.OutOfPaper &&
			len(s.Counts) == schemas.TerminalSlots &&
			s.Counts[0] == schemas.TerminalCounts{Refused: 1, Repeated: 1, Unreadable: 1}
	}))
	first.conn.Close()
	second.ask(status)
	waitFor(t, "the end of a connection", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return s.Connections == 1 && s.Attention == ""
	}))
	second.expect("9300CNdesk-2|COdesk-2-password|", "941")
	connections := func(n int) func(schemas.TerminalState) bool {
		return func(s schemas.TerminalState) bool { return s.Connections == n }
	}
	waitFor(t, "another login", h.reports.is("desk-2", connections(1)))
	waitFor(t, "the end of the first", h.reports.is("desk-1", connections(0)))
	if err := h.drain(); err != nil {
		t.Fatal(err)
	}
	if !h.reports.is("desk-2", connections(0))() {
		t.Error("the stop is not reported")
	}
	notes := h.reports.notes
	if len(notes) != 1 || notes[0].Login != "desk-1" || notes[0].Kind != schemas.NoteCancelled || notes[0].ID == "" ||
		notes[0].ItemBarcode != strings.Repeat("é", schemas.MaxHistoryText) {
		t.Errorf("got the notes %+v, want one", notes)
	}
}

func diku(t *testing.T) okapi.Tenant {
	t.Helper()
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

func TestActivity_CountsRefusalsByFiveMinutes(t *testing.T) {
	t.Parallel()
	a, tenant := sip2.NewActivity(&reports{}, slog.New(slog.DiscardHandler)), diku(t)
	now := time.Now()
	take := func(later time.Duration) []schemas.TerminalCounts {
		t.Helper()
		a.Answered(tenant, "desk-1", wire.CheckOut, false)
		report, due := a.Take(now.Add(later))
		if !due || len(report.Terminals) != 1 {
			t.Fatalf("got %+v", report)
		}
		return report.Terminals[0].Counts
	}
	a.Answered(tenant, "desk-1", wire.CheckOut, true)
	a.Answered(tenant, "desk-1", wire.CheckOut, true)
	for _, c := range []struct {
		later time.Duration
		slot  int
	}{
		{later: time.Minute, slot: 0},
		{later: 6 * time.Minute, slot: 1},
		{later: 56 * time.Minute, slot: 11},
	} {
		got := take(c.later)
		for slot, n := range got {
			if want := map[bool]int{true: 2}[slot == c.slot]; n.Refused != want {
				t.Errorf("after %s: got %v, want 2 in slot %d", c.later, got, c.slot)
				break
			}
		}
	}
	for _, n := range take(100 * time.Hour) {
		if n != (schemas.TerminalCounts{}) {
			t.Error("old refusals count")
		}
	}
}

func TestActivity_ForgetsSilentTerminals(t *testing.T) {
	t.Parallel()
	a, tenant := sip2.NewActivity(&reports{}, slog.New(slog.DiscardHandler)), diku(t)
	a.Answered(tenant, "desk-1", wire.CheckOut, true)
	for _, step := range []struct {
		name  string
		later time.Duration
		due   bool
		left  int
	}{
		{name: "a change is reported", later: 0, due: true, left: 1},
		{name: "and not again", later: time.Minute, due: false, left: 1},
		{name: "after an hour it is forgotten", later: 61 * time.Minute, due: false, left: 0},
	} {
		_, due := a.Take(time.Now().Add(step.later))
		if left, _ := a.Count(); due != step.due || left != step.left {
			t.Errorf("%s: due %t, %d left", step.name, due, left)
		}
	}
}

func TestActivity_IsBounded(t *testing.T) {
	t.Parallel()
	store, tenant := &reports{}, diku(t)
	a := sip2.NewActivity(store, slog.New(slog.DiscardHandler))
	r, err := wire.Parse([]byte(checkOut), wire.CP850, wire.DetectErrors)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4100 {
		a.Answered(tenant, "desk-"+strconv.Itoa(i), wire.CheckOut, false)
		if i < 1100 {
			a.KeepNote(tenant, "desk-"+strconv.Itoa(i), r, schemas.TerminalNote{Kind: schemas.NoteOffLine})
		}
	}
	if terminals, notes := a.Count(); terminals != 4000 || notes != 1000 {
		t.Fatalf("%d terminals and %d notes are kept", terminals, notes)
	}
	store.fail(fault.New(fault.Unavailable, "down"))
	a.ReportAll(t.Context())
	if _, notes := a.Count(); notes != 1000 {
		t.Errorf("an outage of storage left %d notes", notes)
	}
	store.fail(nil)
	a.ReportAll(t.Context())
	if len(store.state) != 4000 || len(store.notes) != 1000 {
		t.Errorf("%d terminals and %d notes were reported", len(store.state), len(store.notes))
	}
	for _, n := range store.sizes {
		if n > schemas.MaxReportedTerminals {
			t.Errorf("a report has %d terminals", n)
		}
	}
	a.KeepNote(tenant, "desk-1", r, schemas.TerminalNote{Kind: schemas.NoteOffLine})
	store.fail(fault.New(fault.Invalid, "never"))
	a.ReportAll(t.Context())
	if _, notes := a.Count(); notes != 0 {
		t.Errorf("%d notes that storage refuses are kept for ever", notes)
	}
}

// Machines that send messages all the time make no report without end.
func TestActivity_ReportsATerminalOnceARound(t *testing.T) {
	t.Parallel()
	store, tenant := &reports{}, diku(t)
	a := sip2.NewActivity(store, slog.New(slog.DiscardHandler))
	store.also = func() {
		if len(store.sizes) < 100 { // else a round would last for 20 s
			a.Answered(tenant, "desk-1", wire.CheckOut, false)
		}
	}
	a.Answered(tenant, "desk-1", wire.CheckOut, false)
	for round := 1; round <= 2; round++ {
		a.ReportAll(t.Context())
		if len(store.sizes) != round {
			t.Fatalf("round %d: %d reports were sent", round, len(store.sizes))
		}
	}
}

func TestActivity_ANoteHasTheSameIDForARepeat(t *testing.T) {
	t.Parallel()
	tenant := diku(t)
	id := func(login, line, loanID string) string {
		a := sip2.NewActivity(&reports{}, slog.New(slog.DiscardHandler))
		r, err := wire.Parse([]byte(line), wire.CP850, wire.DetectErrors)
		if err != nil {
			t.Fatal(err)
		}
		a.KeepNote(tenant, login, r, schemas.TerminalNote{Kind: schemas.NoteUnknownOutcome, LoanID: loanID})
		report, _ := a.Take(time.Now())
		return report.Notes[0].ID
	}
	const loan, next = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378", "83bf8354-5313-4dbe-b038-6ecb0b1b8557"
	first := id("desk-1", checkOut, loan)
	if repeat := id("desk-1", checkOut, loan); repeat != first {
		t.Errorf("a repeat at another instance got %s, want %s", repeat, first)
	}
	if id("desk-2", checkOut, loan) == first || id("desk-1", strings.Replace(checkOut, "2026", "2027", 1), loan) == first {
		t.Error("another message has the same id")
	}
	if id("desk-1", checkOut, next) == first { // storage would keep the first note alone
		t.Error("a repeat of which another loan may exist has the same id")
	}
}
