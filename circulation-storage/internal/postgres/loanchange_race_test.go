package postgres_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// sendAtOnce sends n changes that all wait for the item, and counts their codes.
func (l harness) sendAtOnce(c lending, n int, send func() error) map[fault.Code]int {
	l.t.Helper()
	held := l.begin(`SELECT FROM {schema}.item WHERE id = $1 FOR UPDATE`, c.item)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[fault.Code]int{}
	for range n {
		wg.Go(func() {
			err := send()
			mu.Lock()
			defer mu.Unlock()
			got[fault.CodeOf(err)]++
		})
	}
	l.waitUntilBlocked(n)
	if err := held.Rollback(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
	wg.Wait()
	return got
}

func TestChangeLoan_ByManyDesksAtOnce(t *testing.T) {
	t.Parallel()
	const n = 4
	l := newHarness(t)
	c, id := l.lent(), uuid.New()
	if got := l.sendAtOnce(c, n, func() error { return l.changeLoan(id, c.loan, "claimedReturned", when) }); got[""] != n {
		t.Errorf("one change sent %d times: got %v, want success each time", n, got)
	}
	if got := l.sendAtOnce(c, n, func() error {
		return l.changeLoan(uuid.New(), c.loan, "declaredLost",
			when)
	}); got[""] != 1 || got[fault.Invalid] != n-1 {
		t.Errorf("%d desks: got %v, want one declared loss", n, got)
	}
	for action, want := range map[string]int{"claimedReturned": 1, "declaredLost": 1} {
		if got := l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1 AND jsonb->'loan'->>'action' = $2`,
			c.loan, action); got != want {
			t.Errorf("the history has %s %d times, want %d", action, got, want)
		}
	}
}

// A change, a check-in and a renewal lock the item before the loan, so that one of them waits and
// judges what the other wrote.
func TestChangeLoan_AgainstOtherCommits(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	both := func(a, b func() error) (first, second error) {
		var wg sync.WaitGroup
		wg.Go(func() { first = a() })
		wg.Go(func() { second = b() })
		wg.Wait()
		return first, second
	}
	for i := range 20 {
		action := []string{"claimedReturned", "declaredLost"}[i%2]
		c := l.lent()
		changed, returned := both(
			func() error { return l.changeLoan(uuid.New(), c.loan, action, when) },
			func() error { _, err := l.takeBack(c.item, 2); return err },
		)
		if (changed == nil) == (returned == nil) || changed != nil && !fault.Is(changed, fault.Invalid) || returned != nil &&
			!fault.Is(returned, fault.ItemChanged) {
			t.Errorf("%s got %v, the check-in %v, want one of them", action, changed, returned)
		}

		c = l.lent()
		changed, renewed := both(
			func() error {
				return l.changeLoan(uuid.New(), c.loan, "dueDateChanged", `,"date":"2026-12-25T00:00:00Z"`)
			},
			func() error { _, err := l.renew(renewalOf(c)); return err },
		)
		if changed != nil || renewed != nil && !fault.Is(renewed, fault.LoanChanged) {
			t.Errorf("the change got %v, the renewal %v", changed, renewed)
		}
		if due := field(t, l.stored("loan", c.loan), "dueDate"); due != "2026-12-25T00:00:00Z" {
			t.Errorf("the loan is due %v, want the date of staff, which no renewal moves unseen", due)
		}

		c = l.lent()
		changed, renewed = both(
			func() error { return l.changeLoan(uuid.New(), c.loan, action, when) },
			func() error { _, err := l.renew(renewalOf(c)); return err },
		)
		if changed != nil || renewed != nil && !fault.Is(renewed, fault.ItemChanged) &&
			!fault.Is(renewed, fault.LoanChanged) {
			t.Errorf("%s got %v, the renewal %v", action, changed, renewed)
		}
		if got := field(t, l.stored("loan", c.loan), "action"); got != action {
			t.Errorf("the loan has the action %v, want %s", got, action)
		}
	}
}

func TestChangeLoan_OfALoanThatGetsAnotherItem(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c, other := l.lent(), l.addItem("Checked out", "")
	held := l.begin(`SELECT FROM {schema}.item WHERE id = $1 FOR UPDATE`, c.item)
	done := make(chan error, 1)
	go func() { done <- l.changeLoan(uuid.New(), c.loan, "declaredLost", when) }()
	l.waitUntilBlocked(1)
	if _, err := held.Exec(l.ctx(),
		l.sql(`UPDATE {schema}.loan SET jsonb = jsonb || jsonb_build_object('itemId', $2::text) WHERE id = $1`), c.loan,
		other.String()); err != nil {
		t.Fatal(err)
	}
	if err := held.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if before, now := field(t, l.stored("item", c.item), "status", "name"), field(t, l.stored("item", other), "status",
		"name"); before != "Checked out" || now != "Declared lost" {
		t.Errorf("the items are %v and %v, want the loan's present one lost", before, now)
	}
}
