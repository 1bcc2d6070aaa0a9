package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// changeLoan commits a change with an id; more are its other members. It may be called from any
// goroutine.
func (l harness) changeLoan(id, loan uuid.UUID, action, more string) error {
	parsed, err := commit.ParseLoanChange(loan, fmt.Appendf(nil, `{"id":%q,"action":%q%s}`, id, action, more))
	if err != nil {
		return err
	}
	return l.commits.ChangeLoan(l.ctx(), parsed)
}

const when = `,"date":"2026-04-25T00:00:00Z"`

// mustChange commits a new change that must succeed.
func (l harness) mustChange(loan uuid.UUID, action, more string) {
	l.t.Helper()
	if err := l.changeLoan(uuid.New(), loan, action, more); err != nil {
		l.t.Fatal(err)
	}
}

// stored returns a record as it is stored.
func (l harness) stored(table string, id uuid.UUID) (doc json.RawMessage) {
	l.t.Helper()
	if err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT jsonb FROM {schema}.`+table+` WHERE id = $1`),
		id).Scan(&doc); err != nil {
		l.t.Fatal(err)
	}
	return doc
}

// setStatus gives an item a status, as other modules do.
func (l harness) setStatus(item uuid.UUID, status string) {
	l.t.Helper()
	l.exec(`UPDATE {schema}.item SET jsonb = jsonb_set(jsonb, '{status,name}', to_jsonb($2::text)) WHERE id = $1`, item,
		status)
}

func (l harness) addRecall(item uuid.UUID) {
	l.t.Helper()
	l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, jsonb_build_object('itemId', $2::text, 'requestType', `+
		`'Recall', 'status', 'Open - Not yet filled'))`,
		uuid.New(), item.String())
}

func TestChangeLoan_WritesLoanItemEventAndHistory(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	commented := `,"comment":"on the shelf?"`
	tests := map[string]struct {
		prepare      func(lending)
		action, more string
		loan         map[string]any // nil means absent
		status       string         // of the item
		event        string
	}{
		"information for staff": {
			action: "staffInfoAdded", more: commented,
			loan: map[string]any{"action": "staffInfoAdded", "actionComment": "on the shelf?"}, status: "Checked out",
		},
		"information about a closed loan": {
			prepare: func(c lending) { _, _ = l.takeBack(c.item, 2) },
			action:  "patronInfoAdded", more: commented, loan: map[string]any{
				"action": "patronInfoAdded", "actionComment": "on the shelf?",
			}, status: "Available",
		},
		"another due date": {
			prepare: func(c lending) {
				l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || '{"actionComment":"old","dueDateChangedByRecall":true,`+
					`"reminders":{"lastFeeBilled":{"number":1}}}' WHERE id = $1`, c.loan)
			},
			action: "dueDateChanged", more: when,
			loan: map[string]any{
				"action": "dueDateChanged", "dueDate": "2026-04-25T00:00:00Z", "actionComment": nil,
				"dueDateChangedByRecall": false, "reminders": nil,
			}, status: "Checked out", event: "LOAN_DUE_DATE_CHANGED",
		},
		"another due date of a recalled loan": {
			prepare: func(c lending) {
				l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || '{"dueDateChangedByRecall":true}' WHERE id = $1`, c.loan)
				l.addRecall(c.item)
			},
			action: "dueDateChanged", more: when, loan: map[string]any{"dueDateChangedByRecall": true}, status: "Checked out",
			event: "LOAN_DUE_DATE_CHANGED",
		},
		"a claimed return": {
			action: "claimedReturned", more: when + commented,
			loan: map[string]any{
				"action": "claimedReturned", "actionComment": "on the shelf?", "claimedReturnedDate": "2026-04-25T00:00:00Z",
				"itemStatus": "Claimed returned",
			}, status: "Claimed returned", event: "ITEM_CLAIMED_RETURNED",
		},
		"a claimed return without a comment": {
			prepare: func(c lending) { l.mustChange(c.loan, "staffInfoAdded", commented) },
			action:  "claimedReturned", more: when, loan: map[string]any{"actionComment": nil}, status: "Claimed returned",
			event: "ITEM_CLAIMED_RETURNED",
		},
		"a declared loss": {
			action: "declaredLost", more: when + `,"comment":""`,
			loan: map[string]any{
				"action": "declaredLost", "actionComment": "", "declaredLostDate": "2026-04-25T00:00:00Z",
				"itemStatus": "Declared lost",
			},
			status: "Declared lost", event: "ITEM_DECLARED_LOST",
		},
		"a declared loss after a claimed return": {
			prepare: func(c lending) { l.mustChange(c.loan, "claimedReturned", when) },
			action:  "declaredLost", more: when + commented, loan: map[string]any{
				"action": "declaredLost", "actionComment": "on the shelf?",
			},
			status: "Declared lost", event: "ITEM_DECLARED_LOST",
		},
		"a claimed return that is missing": {
			prepare: func(c lending) { l.mustChange(c.loan, "claimedReturned", when) },
			action:  "markedMissing", more: commented,
			loan: map[string]any{
				"action": "markedMissing", "actionComment": "on the shelf?", "itemStatus": "Missing", "returnDate": nil,
			},
			status: "Missing", event: "LOAN_CLOSED",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := l.lent()
			if tt.prepare != nil {
				tt.prepare(c)
			}
			if err := l.changeLoan(uuid.New(), c.loan, tt.action, tt.more); err != nil {
				t.Fatal(err)
			}
			loan, item := l.stored("loan", c.loan), l.stored("item", c.item)
			for key, want := range tt.loan {
				if got := field(t, loan, key); got != want {
					t.Errorf("the loan has the %s %v, want %v", key, got, want)
				}
			}
			wantLoan := "Open"
			if tt.action == "markedMissing" || tt.status == "Available" {
				wantLoan = "Closed"
			}
			if got := field(t, loan, "status", "name"); got != wantLoan {
				t.Errorf("the loan is %v, want %s", got, wantLoan)
			}
			if got := field(t, item, "status", "name"); got != tt.status {
				t.Errorf("the item is %v, want %s", got, tt.status)
			}
			if got := l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1 AND jsonb->'loan' = $2`, c.loan,
				loan); got != 1 {
				t.Errorf("the history has the loan %d times, want once", got)
			}
			if got := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = $2 AND payload->>'loanId' = $1::text `+
				`AND payload->>'itemId' = $3::text`,
				c.loan.String(), tt.event, c.item.String()); tt.event != "" && got != 1 {
				t.Errorf("got %d events %s, want one", got, tt.event)
			}
		})
	}
}

func TestChangeLoan_DeclaresALossNow(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	l.mustChange(c.loan, "declaredLost", "")
	if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND (jsonb->>'declaredLostDate')::timestamptz > `+
		`clock_timestamp() - interval '1 minute'`, c.loan); n != 1 {
		t.Errorf("got the loan %s, want it lost now", l.stored("loan", c.loan))
	}
}

func TestChangeLoan_FindsAnItemInUpperCase(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || jsonb_build_object('itemId', upper($2::text)) WHERE id = $1`, c.loan,
		c.item.String())
	l.mustChange(c.loan, "claimedReturned", when)
	if got := l.status(c.item); got != "Claimed returned" {
		t.Errorf("the item is %s", got)
	}
}

func TestChangeLoan_Refusals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	status := func(name string) func(*lending) { return func(c *lending) { l.setStatus(c.item, name) } }
	closed := func(c *lending) {
		if _, err := l.takeBack(c.item, 2); err != nil {
			l.t.Fatal(err)
		}
	}
	gone := func(c *lending) { l.exec(`DELETE FROM {schema}.item WHERE id = $1`, c.item) }
	tests := map[string]struct {
		prepare      func(*lending)
		action, more string
		code         fault.Code
		says, about  string // about is the key of its parameter
	}{
		"no such loan": {
			prepare: func(c *lending) { c.loan = uuid.New() }, action: "staffInfoAdded", more: "", code: fault.NotFound,
			says: "there is no loan", about: "",
		},
		"the nil id": {
			prepare: func(c *lending) { c.loan = uuid.Nil }, action: "claimedReturned", more: when, code: fault.NotFound,
			says: "there is no loan", about: "",
		},
		"claimed, closed": {
			prepare: closed, action: "claimedReturned", more: when, code: fault.Invalid, says: "Loan is closed", about: "loanId",
		},
		"lost, closed": {
			prepare: closed, action: "declaredLost", more: when, code: fault.Invalid, says: "Loan is closed", about: "loanId",
		},
		"missing, closed": {
			prepare: closed, action: "markedMissing", more: "", code: fault.Invalid, says: "Loan is closed", about: "loanId",
		},
		"due date, closed": {
			prepare: closed, action: "dueDateChanged", more: when, code: fault.Invalid, says: "Loan is closed", about: "loanId",
		},
		"due date, lost": {
			prepare: status("Declared lost"), action: "dueDateChanged", more: when, code: fault.Invalid,
			says: "item is Declared lost", about: "itemId",
		},
		"due date, claimed": {
			prepare: status("Claimed returned"), action: "dueDateChanged", more: when, code: fault.Invalid,
			says: "item is Claimed returned", about: "itemId",
		},
		"due date, aged": {
			prepare: status("Aged to lost"), action: "dueDateChanged", more: when, code: fault.Invalid,
			says: "item is Aged to lost", about: "itemId",
		},
		"lost twice": {
			prepare: status("Declared lost"), action: "declaredLost", more: when, code: fault.Invalid,
			says: "The item is already declared lost", about: "itemId",
		},
		"missing, unclaimed": {
			prepare: status("Checked out"), action: "markedMissing", more: "", code: fault.Invalid,
			says: "Item is not Claimed returned", about: "itemId",
		},
		"lost, no item": {
			prepare: gone, action: "declaredLost", more: when, code: fault.Invalid, says: "could be found", about: "itemId",
		},
		"due date without date": {
			prepare: status("Checked out"), action: "dueDateChanged", more: "", code: fault.Invalid, says: "date is required",
			about: "date",
		},
		"claimed without date": {
			prepare: status("Checked out"), action: "claimedReturned", more: "", code: fault.Invalid, says: "date is required",
			about: "date",
		},
		"a date that is none": {
			prepare: status("Checked out"), action: "claimedReturned", more: `,"date":"soon"`, code: fault.Invalid,
			says: "date must be a date", about: "date",
		},
		"an action of other operations": {
			prepare: status("Checked out"), action: "renewed", more: when, code: fault.Invalid, says: "action must be one of",
			about: "action",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := l.lent()
			loan := c.loan
			tt.prepare(&c)
			before := l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1`, loan)
			err := l.changeLoan(uuid.New(), c.loan, tt.action, tt.more)
			if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %s saying %q", err, tt.code, tt.says)
			}
			var f *fault.Error
			if tt.about != "" && (!errors.As(err, &f) || f.Details[0].Parameters[0].Key != tt.about) {
				t.Errorf("got %+v, want it about %s", f.Details, tt.about)
			}
			if after := l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1`, loan); after != before {
				t.Error("the refused change wrote the loan")
			}
		})
	}
}

func TestChangeLoan_RepeatChangesNothing(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c, id := l.lent(), uuid.New()
	if err := l.changeLoan(id, c.loan, "declaredLost", when); err != nil {
		t.Fatal(err)
	}
	l.mustChange(c.loan, "patronInfoAdded", `,"comment":"will pay"`) // by another desk
	if err := l.changeLoan(id, c.loan, "declaredLost", when); err != nil {
		t.Errorf("the repeat got %v", err)
	}
	if got := field(t, l.stored("loan", c.loan), "action"); got != "patronInfoAdded" {
		t.Errorf("the loan has the action %v, want that of the other desk", got)
	}
	if err := l.changeLoan(id, l.lent().loan, "declaredLost", when); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "change of another loan") {
		t.Errorf("another loan with the id: got %v, want %s", err, fault.Invalid)
	}
	l.exec(`DELETE FROM {schema}.loan WHERE id = $1`, c.loan)
	if err := l.changeLoan(id, c.loan, "declaredLost", when); err != nil {
		t.Errorf("the repeat after the loan's deletion got %v", err)
	}
}

func TestSweep_FindsOldRowsByAnIndex(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.exec(`INSERT INTO {schema}.loan_change (id, loan_id) SELECT gen_random_uuid(), gen_random_uuid() FROM ` +
		`generate_series(1, 5000)`)
	l.exec(`INSERT INTO {schema}.check_in (id, item_id, item) SELECT gen_random_uuid(), gen_random_uuid(), '{}' FROM ` +
		`generate_series(1, 5000)`)
	l.exec(`INSERT INTO {schema}.check_out_request (key, body_hash, claim_id, lease_ms) SELECT g::text, '', ` +
		`gen_random_uuid(), 1000 FROM generate_series(1, 5000) g`)
	l.exec(`INSERT INTO {schema}.request_change (id, request_id) SELECT gen_random_uuid(), gen_random_uuid() FROM ` +
		`generate_series(1, 5000)`)
	l.exec(`INSERT INTO {schema}.given_up_check_out SELECT gen_random_uuid() FROM generate_series(1, 5000)`)
	l.exec(`ANALYZE {schema}.given_up_check_out`)
	l.exec(`ANALYZE {schema}.request_change, {schema}.loan_change, {schema}.check_in, {schema}.check_out_request`)
	for index, statement := range map[string]string{
		"loan_change_created_date_idx":        postgres.SweepRepeatsSQL("loan_change"),
		"request_change_created_date_idx":     postgres.SweepRepeatsSQL("request_change"),
		"check_in_created_date_idx":           postgres.SweepRepeatsSQL("check_in"),
		"given_up_check_out_created_date_idx": postgres.SweepRepeatsSQL("given_up_check_out"),
		"check_out_request_claimed_date_idx":  postgres.SweepKeysSQL,
	} {
		rows, err := l.db.Pool().Query(l.ctx(), "EXPLAIN "+l.sql(statement), 500)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, index) {
			t.Errorf("got %v, no use of %s:\n%s", err, index, plan)
		}
	}
}

func TestChangeLoan_IsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	for range 3 {
		l.mustChange(c.loan, "staffInfoAdded", `,"comment":"x"`)
	}
	l.exec(`UPDATE {schema}.loan_change SET created_date = created_date - interval '25 hours' WHERE id IN (SELECT id ` +
		`FROM {schema}.loan_change LIMIT 2)`)
	l.exec(`INSERT INTO {schema}.request_change (id, request_id, created_date) VALUES ($1, $1, clock_timestamp() - `+
		`interval '25 hours')`, uuid.New())
	for _, want := range []int{3, 0} { // two changes of loans and that of a request
		if n, err := l.commits.SweepRepeats(l.ctx(), 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan_change`); n != 1 {
		t.Errorf("%d changes are left, want the young one", n)
	}
}
