package postgres_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// replaceLoan commits a replacement of a loan that lending lent; more are its other members, which
// replace earlier ones. It may be called from any goroutine.
func (l harness) replaceLoan(id uuid.UUID, c lending, more string) error {
	parsed, err := commit.ParseLoanReplacement(c.loan, fmt.Appendf(nil, `{"id":%q,"loan":%s}`, id, l.written(c, more)))
	if err != nil {
		return err
	}
	return l.commits.ReplaceLoan(l.ctx(), parsed)
}

// written is a loan as staff write it.
func (l harness) written(c lending, more string) string {
	return fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-04T05:06:00Z",`+
		`"dueDate":"2026-03-25T00:00:00Z","action":"checkedout"%s}`,
		c.loan, c.user, c.item, more)
}

const toClosed = `,"status":{"name":"Closed"},"action":"checkedin"`

// closeLoan commits a check-in with the loan as staff write it. It may be called from any goroutine.
func (l harness) closeLoan(id uuid.UUID, c lending, version int, more string) error {
	parsed, err := commit.ParseCheckIn(fmt.Appendf(nil, `{"id":%q,"itemId":%q,"servicePointId":%q,
		"checkInDate":"2026-03-20T00:00:00Z",
		"itemVersion":%d,"itemStatus":"Available","loan":%s}`, id, c.item, uuid.New(), version, l.written(c, toClosed+more)))
	if err != nil {
		return err
	}
	_, err = l.commits.CheckIn(l.ctx(), parsed)
	return err
}

func TestReplaceLoan_WritesTheLoanAndKeepsWhatClientsDoNotGet(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c, id := l.lent(), uuid.New()
	l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || `+
		`'{"patronGroupIdAtCheckout":"503a81cd-6c26-400f-b620-14c08943697c","dueDateChangedByRecall":true}' WHERE id = $1`,
		c.loan)
	const moved = `,"dueDate":"2026-05-01T00:00:00Z","dueDateChangedByRecall":true,"renewalCount":2`
	if err := l.replaceLoan(id, c, moved); err != nil {
		t.Fatal(err)
	}
	loan := l.stored("loan", c.loan)
	for key, want := range map[string]any{
		"dueDate": "2026-05-01T00:00:00Z", "dueDateChangedByRecall": false, "renewalCount": 2.0, "future": nil,
		"patronGroupIdAtCheckout": "503a81cd-6c26-400f-b620-14c08943697c",
	} {
		if got := field(t, loan, key); got != want {
			t.Errorf("the loan has the %s %v, want %v", key, got, want)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'LOAN_DUE_DATE_CHANGED' AND `+
		`payload->>'loanId' = $1::text`, c.loan.String()); n != 1 {
		t.Errorf("got %d events, want one", n)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.item WHERE id = $1 AND jsonb->>'_version' = '2'`, c.item); n != 1 {
		t.Error("the item changed")
	}
	l.mustChange(c.loan, "staffInfoAdded", `,"comment":"x"`)
	if err := l.replaceLoan(id, c, moved); err != nil || field(t, l.stored("loan", c.loan), "action") != "staffInfoAdded" {
		t.Errorf("the repeat: got %v and the loan %s, want nothing changed", err, l.stored("loan", c.loan))
	}
}

// An item that aged to lost and is with the patron, or back, will not be billed.
func TestReplaceLoan_KeepsWhenTheItemAgedToLost(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	type detail = map[string]any
	const toBill, aged = "2026-04-01T00:00:00Z", "2026-03-01T00:00:00Z"
	for name, tt := range map[string]struct {
		status string
		more   string // besides what the client sends of an open loan
		want   detail
	}{
		"its item is lost": {"Declared lost", "", detail{"dateLostItemShouldBeBilled": toBill, "agedToLostDate": aged}},
		"its item is lent": {"Aged to lost", "", detail{"agedToLostDate": aged}},
		"its item is back": {"Aged to lost", toClosed, detail{"agedToLostDate": aged}},
		"a client sends it": {
			"Checked out", `,"agedToLostDelayedBilling":{"lostItemHasBeenBilled":true}`, detail{"lostItemHasBeenBilled": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.lent()
			l.setStatus(c.item, tt.status)
			l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || jsonb_build_object('agedToLostDelayedBilling', `+
				`jsonb_build_object('dateLostItemShouldBeBilled', $2::text, 'agedToLostDate', $3::text)) WHERE id = $1`,
				c.loan, toBill, aged)
			write := l.replaceLoan
			if tt.more == toClosed {
				write = func(id uuid.UUID, c lending, _ string) error { return l.closeLoan(id, c, 2, "") }
			}
			if err := write(uuid.New(), c, tt.more); err != nil {
				t.Fatal(err)
			}
			if got := field(t, l.stored("loan", c.loan), "agedToLostDelayedBilling"); !reflect.DeepEqual(got, any(tt.want)) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReplaceLoan_ChangesTheItemAsFOLIO(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for before, after := range map[string]string{
		"Checked out": "Checked out", "Claimed returned": "Checked out", "Aged to lost": "Checked out",
		"Declared lost": "Declared lost",
	} {
		c := l.lent()
		l.setStatus(c.item, before)
		if err := l.replaceLoan(uuid.New(), c, `,"actionComment":"x"`); err != nil {
			t.Errorf("%s: %v", before, err)
		}
		if got := field(t, l.stored("item", c.item), "status", "name"); got != after {
			t.Errorf("%s: the item is %v, want %s", before, got, after)
		}
	}
	c := l.lent()
	if _, err := l.takeBack(c.item, 2); err != nil {
		t.Fatal(err)
	}
	if err := l.replaceLoan(uuid.New(), c, toClosed); err != nil ||
		field(t, l.stored("item", c.item), "status", "name") != "Available" {
		t.Errorf("a closed loan: got %v and the item %s, want it Available still", err, l.stored("item", c.item))
	}
	again := l.withLock(uuid.New(), c.item)
	again.version = 3
	l.lend(again)
	if err := l.replaceLoan(uuid.New(), c, toClosed+`,"userId":null,"actionComment":"anonymous"`); err != nil {
		t.Errorf("a closed loan: %v", err)
	}
	if got := field(t, l.stored("item", c.item), "status", "name"); got != "Checked out" ||
		l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND is_open`, again.loan) != 1 {
		t.Errorf("the closed loan made its item %v, which is lent again", got)
	}
}

// The item of a closed loan may be on loan again, and nothing is due.
func TestReplaceLoan_MovesNoDueDateOfAClosedLoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for name, dueDate := range map[string]string{"none": `null`, "another": `"2026-05-01T00:00:00Z"`} {
		c := l.lent()
		if _, err := l.takeBack(c.item, 2); err != nil {
			t.Fatal(err)
		}
		l.setStatus(c.item, "Declared lost")
		if err := l.replaceLoan(uuid.New(), c, toClosed+`,"dueDate":`+dueDate); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'LOAN_DUE_DATE_CHANGED' AND `+
			`payload->>'loanId' = $1::text`, c.loan.String()); n != 0 {
			t.Errorf("%s: got %d events of a moved due date, want none", name, n)
		}
	}
}

func TestReplaceLoan_Refusals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	const moved = `,"dueDate":"2026-05-01T00:00:00Z"`
	status := func(name string) func(*lending) { return func(c *lending) { l.setStatus(c.item, name) } }
	nothing := func(*lending) {}
	tests := map[string]struct {
		prepare func(*lending)
		more    string
		code    fault.Code
		says    string
	}{
		"no such loan": {
			prepare: func(c *lending) { c.loan = uuid.New() }, more: "", code: fault.NotFound, says: "there is no loan",
		},
		"a closed loan opened": {
			prepare: func(c *lending) { _, _ = l.takeBack(c.item, 2) }, more: "", code: fault.Invalid, says: "Loan is closed",
		},
		"an open loan closed": {prepare: nothing, more: toClosed, code: fault.LoanChanged, says: "is open"},
		"another item": {
			prepare: nothing, more: fmt.Sprintf(`,"itemId":%q`, uuid.New()), code: fault.Invalid,
			says: "itemId of a loan must stay",
		},
		"another patron": {
			prepare: nothing, more: fmt.Sprintf(`,"userId":%q`, uuid.New()), code: fault.Invalid,
			says: "userId of an open loan must stay",
		},
		"no patron": {
			prepare: nothing, more: `,"userId":null`, code: fault.Invalid, says: "Open loan must have a user ID",
		},
		"no item": {
			prepare: func(c *lending) { l.exec(`DELETE FROM {schema}.item WHERE id = $1`, c.item) }, more: "",
			code: fault.Invalid, says: "could be found",
		},
		"due date, claimed": {
			prepare: status("Claimed returned"), more: moved, code: fault.Invalid, says: "item is Claimed returned",
		},
		"due date, lost": {prepare: status("Declared lost"), more: moved, code: fault.Invalid, says: "item is Declared lost"},
		"no action":      {prepare: nothing, more: `,"action":null`, code: fault.Invalid, says: "loan.action is required"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := l.lent()
			loan := c.loan
			tt.prepare(&c)
			before := l.stored("loan", loan)
			if err := l.replaceLoan(uuid.New(), c, tt.more); !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s saying %q", err, tt.code, tt.says)
			}
			if after := l.stored("loan", loan); string(after) != string(before) {
				t.Errorf("the loan was %s and is %s", before, after)
			}
		})
	}
}

func TestCheckIn_WithTheLoanAsStaffWriteIt(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c, id := l.lent(), uuid.New()
	if err := l.closeLoan(id, c, 2, `,"actionComment":"by hand"`); err != nil {
		t.Fatal(err)
	}
	loan := l.stored("loan", c.loan)
	for key, want := range map[string]any{
		"returnDate": "2026-03-20T00:00:00Z", "actionComment": "by hand", "itemStatus": "Available", "future": nil,
	} {
		if got := field(t, loan, key); got != want {
			t.Errorf("the loan has the %s %v, want %v", key, got, want)
		}
	}
	if open := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND is_open`, c.loan); open != 0 ||
		field(t, l.stored("item", c.item), "status", "name") != "Available" {
		t.Errorf("got the loan %s, want it closed and its item Available", loan)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.patron_action_session WHERE jsonb->>'loanId' = $1::text AND `+
		`jsonb->>'actionType' = 'Check-in'`, c.loan.String()); n != 0 {
		t.Error("a session at a desk was recorded")
	}
	if err := l.closeLoan(id, c, 2, ""); err != nil {
		t.Errorf("the repeat got %v", err)
	}
	if err := l.closeLoan(uuid.New(), c, 3, ""); !fault.Is(err, fault.LoanChanged) {
		t.Errorf("a closed loan: got %v, want %s", err, fault.LoanChanged)
	}
	open := l.lent()
	if err := l.closeLoan(uuid.New(), open, 2, `,"status":{"name":"Open"}`); !fault.Is(err, fault.Invalid) {
		t.Errorf("a loan that stays open: got %v, want %s", err, fault.Invalid)
	}
	if err := l.closeLoan(uuid.New(), open, 2, fmt.Sprintf(`,"itemId":%q`, c.item)); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "loan.itemId") {
		t.Errorf("a loan of another item: got %v, want %s", err, fault.Invalid)
	}
	c.item = open.item
	if err := l.closeLoan(uuid.New(), c, 2, ""); !fault.Is(err, fault.LoanChanged) {
		t.Errorf("another item's loan: got %v, want %s", err, fault.LoanChanged)
	}
}

// Both lock the item before the loan, and the later one sees what the other wrote.
func TestReplaceLoan_AgainstACheckIn(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for range 20 {
		c := l.lent()
		var wg sync.WaitGroup
		var replaced, returned error
		wg.Go(func() { replaced = l.replaceLoan(uuid.New(), c, `,"dueDate":"2026-05-01T00:00:00Z"`) })
		wg.Go(func() { _, returned = l.takeBack(c.item, 2) })
		wg.Wait()
		if returned != nil || replaced != nil && !fault.Is(replaced, fault.Invalid) {
			t.Errorf("the replacement got %v, the check-in %v", replaced, returned)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND is_open`, c.loan); n != 0 {
			t.Error("the replacement opened the returned loan again")
		}
	}
}

func TestCheckOut_Unfenced(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.decide(true) // the lock is on
	c := lending{loan: uuid.New(), user: uuid.New(), item: l.addItem("Available", ""), version: 1}
	send := func(more string) (commit.Outcome, error) {
		parsed, err := commit.ParseCheckOut(fmt.Appendf(nil, `{"loan":%s,"itemVersion":%d%s}`, l.written(c, ""), c.version,
			more))
		if err != nil {
			return "", err
		}
		_, outcome, err := l.sendParsed(parsed)
		return outcome, err
	}
	for name, more := range map[string]string{
		"no fence": "", "a fence too": fmt.Sprintf(`,"unfenced":true,"lockId":%q`, uuid.New()),
		"limits": `,"unfenced":true,"limits":[{"max":1}]`,
	} {
		if _, err := send(more); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want %s", name, err, fault.Invalid)
		}
	}
	for _, want := range []commit.Outcome{commit.Committed, commit.Repeated} {
		if outcome, err := send(`,"unfenced":true`); err != nil || outcome != want {
			t.Errorf("got %s, %v, want %s", outcome, err, want)
		}
	}
	if got := field(t, l.stored("item", c.item), "status", "name"); got != "Checked out" {
		t.Errorf("the item is %v", got)
	}
	c.loan, c.version = uuid.New(), 2
	if _, err := send(`,"unfenced":true`); !fault.Is(err, fault.ItemChanged) {
		t.Errorf("a second loan: got %v, want %s", err, fault.ItemChanged)
	}
}
