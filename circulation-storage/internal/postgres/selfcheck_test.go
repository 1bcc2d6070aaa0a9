package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
)

// machines are the terminals of a tenant.
type machines struct {
	past
	store *postgres.RecordStore
}

func newMachines(t *testing.T) machines {
	t.Helper()
	p := newPast(t)
	return machines{p, postgres.NewRecordStore(p.db, func() {})}
}

func (m machines) report(instance string, r schemas.TerminalReport) {
	m.t.Helper()
	if err := m.store.ReportTerminals(m.ctx(), instance, r); err != nil {
		m.t.Fatal(err)
	}
}

func (m machines) activity() schemas.TerminalActivity {
	m.t.Helper()
	a, err := m.store.TerminalActivity(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

func (m machines) wantOne() schemas.TerminalState {
	m.t.Helper()
	a := m.activity()
	if len(a.Terminals) != 1 {
		m.t.Fatalf("got %+v, want one terminal", a.Terminals)
	}
	return a.Terminals[0]
}

func connected(
	address string, since, last time.Duration, message string, counts ...schemas.TerminalCounts,
) schemas.TerminalReport {
	return schemas.TerminalReport{Terminals: []schemas.TerminalState{{
		Login: "desk-1", Connections: 1, Address: address, ConnectedMs: since.Milliseconds(), LastMs: last.Milliseconds(),
		LastMessage: message, Counts: counts,
	}}}
}

func TestTerminals_JoinWhatInstancesReport(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	m.report("two", connected("10.0.0.1", time.Hour, time.Hour, "11",
		schemas.TerminalCounts{CheckOuts: 9, Refused: 2}, schemas.TerminalCounts{Refused: 1, Unreadable: 5}))
	last := connected("10.0.0.2", time.Minute, time.Second, "09",
		schemas.TerminalCounts{Refused: 1, Repeated: 7, WrongLogins: 8})
	last.Terminals[0].Attention = schemas.OutOfPaper
	m.report("one", last)
	all := schemas.TerminalCounts{CheckOuts: 9, Refused: 4, Repeated: 7, Unreadable: 5, WrongLogins: 8}
	got := m.wantOne()
	if got.Connections != 2 || got.Address != "10.0.0.2" || got.LastMessage != "09" || *got.LastHour != all ||
		fmt.Sprint(got.Instances) != "[one two]" || got.Attention != schemas.OutOfPaper ||
		!isOfNow(got.ConnectedDate) || !isOfNow(got.LastDate) {
		t.Errorf("got %+v", got)
	}
	// An instance that died reports no end: its connections stop to count, and what they did when it is old.
	m.exec(`UPDATE {schema}.self_check_state SET reported_date = reported_date - interval '46 s' WHERE instance = 'one'`)
	got = m.wantOne()
	if got.Connections != 1 || got.Address != "10.0.0.1" || got.LastMessage != "09" || *got.LastHour != all ||
		fmt.Sprint(got.Instances) != "[two]" {
		t.Errorf("after the death of an instance: got %+v", got)
	}
	m.exec(`UPDATE {schema}.self_check_state SET reported_date = reported_date - interval '56 min'`)
	all.Unreadable, all.Refused = 0, 3
	if got = m.wantOne(); got.Connections != 0 || got.Address != "" || got.ConnectedDate != "" || *got.LastHour != all {
		t.Errorf("after an hour: got %+v, want what the youngest slots count", got)
	}
}

func TestTerminals_KeepTheLastMessageOfAMachineThatLeft(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	m.report("one", connected("10.0.0.1", time.Hour, 0, "11"))
	m.report("one", schemas.TerminalReport{Terminals: []schemas.TerminalState{
		{Login: "desk-1", Attention: schemas.OutOfPaper}, {Login: "desk-1"},
	}})
	if got := m.wantOne(); got.Connections+len(got.Instances) != 0 || got.LastMessage != "11" || got.LastDate == "" {
		t.Errorf("got %+v", got)
	}
	m.exec(`UPDATE {schema}.self_check_state SET reported_date = reported_date - interval '1 hour',
		last_date = last_date - interval '1 hour'`)
	back := connected("10.0.0.2", 0, 0, "09", schemas.TerminalCounts{Refused: 3})
	back.Terminals[0].Attention = schemas.ShuttingDown
	m.report("one", back)
	if got := m.wantOne(); got.Connections != 1 || got.Address != "10.0.0.2" || got.LastMessage != "09" ||
		!isOfNow(got.ConnectedDate) || !isOfNow(got.LastDate) || got.LastHour.Refused != 3 ||
		got.Attention != schemas.ShuttingDown {
		t.Errorf("after it came back: got %+v", got)
	}
}

// isOfNow is true for the last half hour.
func isOfNow(date string) bool {
	at, err := time.Parse(schemas.FolioTime, date)
	return err == nil && time.Since(at) < 30*time.Minute
}

func TestTerminals_KeepABoundedNumberOfNotes(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	oldest := schemas.TerminalNote{
		ID: uuid.NewString(), AgoMs: 60_000, Login: "desk-1", Kind: schemas.NoteOffLine, Code: "ITEM_NOT_LOANABLE",
		UserBarcode: "P-1", ItemBarcode: "B-1", LoanID: uuid.NewString(),
	}
	for range 2 { // a repeat is kept once
		m.report("one", schemas.TerminalReport{Notes: []schemas.TerminalNote{oldest}})
	}
	got := m.activity().Notes
	if len(got) != 1 {
		t.Fatalf("got %+v, want one note", got)
	}
	want := oldest
	want.AgoMs, want.Date, want.Instance = 0, got[0].Date, "one"
	if got[0] != want || want.Date == "" {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	last := schemas.TerminalNote{ID: uuid.Max.String(), Login: "desk-1", Kind: schemas.NoteBlockCard}
	m.report("one", schemas.TerminalReport{Notes: []schemas.TerminalNote{last}})
	if got := m.activity().Notes; len(got) != 2 || got[0].ID != last.ID {
		t.Errorf("got %+v, want the last note first", got)
	}
	for range schemas.MaxTerminalNotes / schemas.MaxReportedNotes {
		notes := make([]schemas.TerminalNote, schemas.MaxReportedNotes)
		for i := range notes {
			notes[i] = schemas.TerminalNote{ID: uuid.NewString(), Login: "desk-2", Kind: schemas.NoteCancelled}
		}
		m.report("two", schemas.TerminalReport{Notes: notes})
	}
	got = m.activity().Notes
	if len(got) != schemas.MaxTerminalNotes || got[len(got)-1].ID == oldest.ID {
		t.Errorf("got %d notes, want %d without the oldest", len(got), schemas.MaxTerminalNotes)
	}
	var left int
	m.scan(&left, `SELECT count(*) FROM {schema}.self_check_note`)
	if left != schemas.MaxTerminalNotes {
		t.Errorf("the table has %d notes", left)
	}
}

func TestTerminals_AreSweptWhenOld(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	note := func() schemas.TerminalReport {
		r := connected("10.0.0.1", 0, 0, "99")
		r.Notes = []schemas.TerminalNote{{ID: uuid.NewString(), Login: "desk-1", Kind: schemas.NoteBlockCard}}
		return r
	}
	for _, instance := range []string{"gone", "ahead", "there"} {
		m.report(instance, note())
	}
	for instance, shift := range map[string]string{"gone": "-1", "ahead": "1"} {
		m.exec(`UPDATE {schema}.self_check_state SET reported_date = reported_date + ` + shift +
			` * interval '8 days' WHERE instance = '` + instance + `'`)
		m.exec(`UPDATE {schema}.self_check_note SET noted_date = noted_date + ` + shift +
			` * interval '31 days' WHERE instance = '` + instance + `'`)
	}
	for _, want := range []int{1, 1, 0} {
		if n, err := m.store.SweepTerminals(m.ctx(), 1); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	var instances string
	m.scan(&instances, `SELECT string_agg(instance, ' ') FROM {schema}.self_check_state`)
	if notes := m.activity().Notes; instances != "there" || len(notes) != 1 || notes[0].Instance != "there" {
		t.Errorf("left are states of %q and the notes %+v", instances, notes)
	}
}

// scan reads one value by SQL in which {schema} is the tenant's.
func (m machines) scan(into any, statement string) {
	m.t.Helper()
	if err := m.db.Pool().QueryRow(m.ctx(), m.in(statement)).Scan(into); err != nil {
		m.t.Fatal(err)
	}
}
