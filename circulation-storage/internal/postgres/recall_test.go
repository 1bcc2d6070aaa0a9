package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// lentCopy is a copy of a title that was just lent, in version 2, until 25 March.
type lentCopy struct {
	of   title
	loan lending
}

func (l harness) lentCopy() lentCopy {
	l.t.Helper()
	of := l.addTitle(1)
	c := l.withLock(uuid.New(), of.copies[0])
	l.lend(c)
	return lentCopy{of: of, loan: c}
}

func (c lentCopy) newRequest() request {
	return request{id: uuid.New(), by: uuid.New(), of: c.of, item: c.loan.item, position: 1}
}

// placeOn puts a request for the lent copy at the end of its queue. A due date is that of a recall.
// It may be called from any goroutine.
func (l harness) placeOn(c lentCopy, r request, kind, due string) (schemas.PlacedRequest, error) {
	recall := ""
	if due != "" {
		recall = fmt.Sprintf(`,"recall":{"loanId":%q,"judgedDueDate":"2026-03-25T00:00:00Z","dueDate":%q}`, c.loan.loan, due)
	}
	doc := strings.Replace(r.doc(), `"requestType":"Hold"`, fmt.Sprintf(`"requestType":%q`, kind), 1)
	p, err := commit.ParsePlacement(fmt.Appendf(nil, `{"request":%s,"itemVersion":2%s}`, doc, recall))
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	return l.commits.Place(l.ctx(), p)
}

// describeLoan returns action, due date and mark of the stored loan.
func (l harness) describeLoan(c lentCopy) (state string) {
	l.t.Helper()
	err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT concat_ws(' ', jsonb->>'action', jsonb->>'dueDate',
		jsonb->>'dueDateChangedByRecall')
		FROM {schema}.loan WHERE id = $1`), c.loan.loan).Scan(&state)
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

const tenth = "2026-03-10T00:00:00Z"

func TestPlace_RecallChangesTheLoanOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lentCopy()
	recall := c.newRequest()
	for range 2 { // the second is a repeat whose answer was lost
		got, err := l.placeOn(c, recall, "Recall", tenth)
		if err != nil || field(t, got.Request, "position") != 1.0 || field(t, got.Item, "_version") != 2.0 {
			t.Fatalf("got %s, %s, %v", got.Request, got.Item, err)
		}
	}
	if _, err := l.placeOn(c, c.newRequest(), "Recall", "2026-03-09T00:00:00Z"); err != nil {
		t.Errorf("a second recall, judged before the first: got %v", err)
	}
	if got, want := l.describeLoan(c), "recallrequested "+tenth+" true"; got != want {
		t.Errorf("got the loan %q, want %q", got, want)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan_history
		WHERE jsonb->'loan'->>'action' = 'recallrequested'`); n != 1 {
		t.Errorf("got %d entries of the loan's history, want 1", n)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'LOAN_DUE_DATE_CHANGED' AND `+
		`payload->>'dueDate' = $1`, tenth); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
	if _, err := l.renew(renewalOf(c.loan)); !fault.Is(err, fault.LoanChanged) {
		t.Errorf("a renewal that saw no recall: got %v, want %s", err, fault.LoanChanged)
	}
}

func TestPlace_HoldMarksTheLoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lentCopy()
	if _, err := l.placeOn(c, c.newRequest(), "Hold", ""); err != nil {
		t.Fatal(err)
	}
	if got, want := l.describeLoan(c), "holdrequested 2026-03-25T00:00:00Z"; got != want {
		t.Errorf("got the loan %q, want %q", got, want)
	}
}

// A recall that cannot be written leaves no request and no changed loan.
func TestPlace_FailureLeavesTheLoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lentCopy()
	l.exec(`ALTER TABLE {schema}.outbox ADD CONSTRAINT refused CHECK (event_type <> 'LOAN_DUE_DATE_CHANGED')`)
	if _, err := l.placeOn(c, c.newRequest(), "Recall", tenth); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %s", err, fault.Internal)
	}
	if got, want := l.describeLoan(c), "checkedout 2026-03-25T00:00:00Z"; got != want {
		t.Errorf("got the loan %q, want %q", got, want)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

// Of the patrons who recall one loan at once, one changes it. All are in the queue.
func TestPlace_ManyRecallsAtOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lentCopy()
	got := race(rivals, func(i int) error {
		_, err := l.placeOn(c, c.newRequest(), "Recall", fmt.Sprintf("2026-03-%02dT00:00:00Z", i+1))
		return err
	})
	if got[""] != rivals {
		t.Errorf("got %v, want all recalls placed", got)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan_history
		WHERE jsonb->'loan'->>'action' = 'recallrequested'`); n != 1 {
		t.Errorf("the loan was changed %d times, want once", n)
	}
}

// Each round sends two commits for one lent copy at once, which take the same rows.
func TestPlace_BesideOtherCommitsOfTheItem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind, due string
		other           func(harness, lentCopy) error
		both            bool // both may succeed
		lost            []fault.Code
	}{
		{
			name: "recall, renewal", kind: "Recall", due: tenth, lost: []fault.Code{fault.LoanChanged},
			other: func(l harness, c lentCopy) error { _, err := l.renew(renewalOf(c.loan)); return err },
		},
		{
			name: "hold, renewal", kind: "Hold", both: true,
			other: func(l harness, c lentCopy) error { _, err := l.renew(renewalOf(c.loan)); return err },
		},
		{
			name: "recall, check-in", kind: "Recall", due: tenth, lost: []fault.Code{fault.RequestChanged, fault.ItemChanged},
			other: func(l harness, c lentCopy) error { _, err := l.takeBack(c.loan.item, 2); return err },
		},
		{
			name: "hold, check-in", kind: "Hold", lost: []fault.Code{fault.RequestChanged, fault.ItemChanged},
			other: func(l harness, c lentCopy) error { _, err := l.takeBack(c.loan.item, 2); return err },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			for range rivals {
				c := l.lentCopy()
				got := race(2, func(i int) error {
					if i == 0 {
						return tt.other(l, c)
					}
					_, err := l.placeOn(c, c.newRequest(), tt.kind, tt.due)
					return err
				})
				lost := 0
				for _, code := range tt.lost {
					lost += got[code]
				}
				if want := map[bool]int{true: 2, false: 1}[tt.both]; got[""] != want || got[""]+lost != 2 {
					t.Errorf("got %v, want %d to succeed", got, want)
				}
				if renewed := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND jsonb->>'renewalCount' = '1'
					AND jsonb->>'dueDate' = '2026-04-25T00:00:00Z'`, c.loan.loan); tt.both && renewed != 1 {
					t.Errorf("the renewal is lost: %s", l.describeLoan(c))
				}
			}
		})
	}
}

// A copy waits for its borrower while another patron recalls it. The check-out sees the recall, or
// the recall sees the loan.
func TestPlace_RecallBesideACheckOut(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for range rivals {
		of, patron := l.addTitle(1), uuid.New()
		queue := l.queue(of, of.copies[0], patron)
		c := l.withLock(patron, of.copies[0])
		c.request, c.noRecall = queue[0].id, true
		recall := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}
		var lending, placing error
		race(2, func(i int) error {
			if i == 0 {
				_, _, lending = l.send(c)
				return lending
			}
			_, placing = l.place(recall, "Recall", false)
			return placing
		})
		if lent := lending == nil && fault.Is(placing, fault.ItemChanged); !lent &&
			(placing != nil || !fault.Is(lending, fault.RequestChanged)) {
			t.Errorf("lending: %v, placing: %v; want one of them refused", lending, placing)
		}
	}
}
