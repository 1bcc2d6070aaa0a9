package postgres_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// renewal is a renewal to send of a loan that lending lent.
type renewal struct {
	loan, item uuid.UUID
	version    int
	judged     string // JSON members that say how the loan was judged
	due        string
}

// renewalOf is the first renewal of a loan just lent.
func renewalOf(c lending) renewal {
	return renewal{
		loan: c.loan, item: c.item, version: 2,
		judged: `"judgedDueDate":"2026-03-25T01:00:00+01:00","judgedRenewalCount":0`, due: "2026-04-25T00:00:00Z",
	}
}

const renewalPolicy = "43198de5-f56a-4a53-a0bd-5a324418967a"

// renew commits a renewal. It may be called from any goroutine.
func (l harness) renew(r renewal) (schemas.RenewalResult, error) {
	parsed, err := commit.ParseRenewal(fmt.Appendf(nil,
		`{"loanId":%q,"itemId":%q,"itemVersion":%d,%s,"dueDate":%q,"loanPolicyId":%q}`,
		r.loan, r.item, r.version, r.judged, r.due, renewalPolicy))
	if err != nil {
		return schemas.RenewalResult{}, err
	}
	return l.commits.Renew(l.ctx(), parsed)
}

func (l harness) lent() lending {
	l.t.Helper()
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	l.lend(c)
	return c
}

func TestRenew_MovesTheDueDateAndNothingElse(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || '{"actionComment":"old"}' WHERE id = $1`, c.loan)
	got, err := l.renew(renewalOf(c))
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]any{
		"dueDate": "2026-04-25T00:00:00Z", "action": "renewed", "renewalCount": 1.0, "loanPolicyId": renewalPolicy,
		"actionComment": nil, "loanDate": "2026-03-04T05:06:00Z", "userId": c.user.String(), "future": 1.10,
	} {
		if value := field(t, got.Loan, what); value != want {
			t.Errorf("%s: got %v, want %v", what, value, want)
		}
	}
	if status := field(t, got.Loan, "status", "name"); status != "Open" {
		t.Errorf("got a loan that is %v, want Open", status)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.item WHERE id = $1 AND jsonb->>'_version' = '2'`, c.item); n != 1 {
		t.Error("the renewal changed the item")
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'LOAN_DUE_DATE_CHANGED' AND `+
		`payload->>'loanId' = $1::text`, c.loan); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}

	again := renewalOf(c)
	again.judged, again.due = `"judgedDueDate":"2026-04-25T00:00:00Z","judgedRenewalCount":1`, "2026-05-25T00:00:00Z"
	if got, err = l.renew(again); err != nil || field(t, got.Loan, "renewalCount") != 2.0 {
		t.Errorf("got %s, %v, want a second renewal", got.Loan, err)
	}
}

func TestRenew_Refusals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	tests := map[string]struct {
		change func(*renewal) // of the renewal or of what is stored
		want   fault.Code
		says   string
	}{
		"no such loan": {
			change: func(r *renewal) { r.loan = uuid.New() }, want: fault.Invalid, says: "no loan of the item",
		},
		"no such item": {change: func(r *renewal) { r.item = uuid.New() }, want: fault.Invalid, says: "no item"},
		"another item": {
			change: func(r *renewal) { r.item = l.addItem("Available", "") }, want: fault.Invalid, says: "no loan of the item",
		},
		"the item changed": {change: func(r *renewal) { r.version = 1 }, want: fault.ItemChanged, says: "_version"},
		"returned": {change: func(r *renewal) {
			l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || '{"status":{"name":"Closed"}}' WHERE id = $1`, r.loan)
		}, want: fault.LoanChanged, says: "is closed"},
		"another due date": {
			change: func(r *renewal) { r.judged = `"judgedDueDate":"2026-03-25T00:00:01Z","judgedRenewalCount":0` },
			want:   fault.LoanChanged, says: "another due date",
		},
		"no due date judged": {
			change: func(r *renewal) { r.judged = `"judgedRenewalCount":0` }, want: fault.LoanChanged, says: "another due date",
		},
		"another count": {
			change: func(r *renewal) { r.judged = `"judgedDueDate":"2026-03-25T00:00:00Z","judgedRenewalCount":1` },
			want:   fault.LoanChanged, says: "was renewed",
		},
		"recalled": {change: func(r *renewal) {
			l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, jsonb_build_object('itemId', $2::text, 'requestType',`+
				` 'Recall', 'status', 'Open - Not yet filled'))`,
				uuid.New(), r.item.String())
		}, want: fault.LoanChanged, says: "was recalled"},
		"an earlier due date": {
			change: func(r *renewal) { r.due = "2026-03-24T00:00:00Z" }, want: fault.Invalid, says: "must be later",
		},
		"the same due date": {
			change: func(r *renewal) { r.due = "2026-03-25T00:00:00Z" }, want: fault.Invalid, says: "must be later",
		},
		"a due date that none": {
			change: func(r *renewal) { r.due = "soon" }, want: fault.Invalid, says: "dueDate must be a date",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := l.lent()
			r := renewalOf(c)
			tt.change(&r)
			if _, err := l.renew(r); !fault.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s saying %q", err, tt.want, tt.says)
			}
			if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND (jsonb ? 'renewalCount' OR jsonb->>'action' `+
				`<> 'checkedout')`, c.loan); n != 0 {
				t.Error("the loan was renewed")
			}
		})
	}
}

func TestRenew_ClosedRecallsAndOtherRequestsDoNotHinder(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	for kind, status := range map[string]string{"Recall": "Closed - Cancelled", "Hold": "Open - Not yet filled"} {
		l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, jsonb_build_object('itemId', $2::text, 'requestType', `+
			`$3::text, 'status', $4::text))`,
			uuid.New(), c.item.String(), kind, status)
	}
	if _, err := l.renew(renewalOf(c)); err != nil {
		t.Error(err)
	}
}

func TestRenew_SentManyTimesAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	held := l.begin(`SELECT FROM {schema}.loan WHERE id = $1 FOR UPDATE`, c.loan)
	const n = 5
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[fault.Code]int{}
	for range n {
		wg.Go(func() {
			_, err := l.renew(renewalOf(c))
			mu.Lock()
			defer mu.Unlock()
			got[fault.CodeOf(err)]++
		})
	}
	l.waitUntilBlocked(n) // all have begun
	if err := held.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if got[""] != 1 || got[fault.LoanChanged] != n-1 {
		t.Errorf("got %v, want one renewal and the others refused because the loan changed", got)
	}
}

// A check-in and a renewal lock item and loan in the same order, so that one of them waits.
func TestRenew_AgainstACheckIn(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for range 20 {
		c := l.lent()
		var wg sync.WaitGroup
		var renewed, returned error
		wg.Go(func() { _, renewed = l.renew(renewalOf(c)) })
		wg.Go(func() { _, returned = l.takeBack(c.item, 2) })
		wg.Wait()
		if returned != nil {
			t.Errorf("check-in: %v", returned)
		}
		if code := fault.CodeOf(renewed); code != "" && code != fault.ItemChanged {
			t.Errorf("renewal: %v, want success or %s", renewed, fault.ItemChanged)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE id = $1 AND is_open`, c.loan); n != 0 {
			t.Error("the renewal opened the returned loan again")
		}
	}
}

func TestRenew_ThroughOverride(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.lent()
	l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"status":{"name":"Aged to lost"}}' WHERE id = $1`, c.item)
	l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || '{"itemStatus":"Aged to lost",`+
		`"agedToLostDelayedBilling":{"lostItemHasBeenBilled":false,"agedToLostDate":"2026-03-01T00:00:00Z"},`+
		`"reminders":{"lastFeeBilled":{"number":1}}}' WHERE id = $1`, c.loan)
	l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, jsonb_build_object('itemId', $2::text, 'requestType', `+
		`'Recall', 'status', 'Open - Not yet filled'))`,
		uuid.New(), c.item.String())
	r := renewalOf(c)
	judged := r.judged
	r.judged = judged + `,"override":{"comment":"agreed","itemStatus":"Checked out"}`
	if _, err := l.renew(r); !fault.Is(err, fault.LoanChanged) {
		t.Errorf("a recall that staff did not see: got %v, want %s", err, fault.LoanChanged)
	}
	r.judged = judged + `,"override":{"comment":"agreed","recalled":true,"itemStatus":"Checked out"}`
	got, err := l.renew(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]any{
		"action": "renewedThroughOverride", "actionComment": "agreed", "itemStatus": "Checked out",
		"agedToLostDelayedBilling": map[string]any{"agedToLostDate": "2026-03-01T00:00:00Z"}, "reminders": nil,
	} {
		if value := field(t, got.Loan, what); !reflect.DeepEqual(value, want) {
			t.Errorf("%s: got %v, want %v", what, value, want)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.item WHERE id = $1 AND jsonb->'status'->>'name' = 'Checked out' AND `+
		`jsonb->>'_version' = '3'`, c.item); n != 1 {
		t.Error("the item is not Checked out in its next version")
	}
	r.judged = judged + `,"override":{"comment":""}`
	if _, err := l.renew(r); !fault.Is(err, fault.Invalid) {
		t.Errorf("no comment: got %v, want %s", err, fault.Invalid)
	}
}
