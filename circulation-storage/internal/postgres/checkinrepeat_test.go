package postgres_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// sameAnswer reports whether two check-ins got the same answer, byte for byte.
func sameAnswer(a, b schemas.CheckInResult) bool {
	return string(a.Loan) == string(b.Loan) && string(a.Item) == string(b.Item)
}

func TestCheckIn_RepeatGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, onLoan := range map[string]bool{"of an item on loan": true, "of an item that is not on loan": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			item, version := l.addItem("Available", ""), 1
			if onLoan {
				l.lend(l.withLock(uuid.New(), item))
				version = 2
			}
			id := uuid.New()
			first, outcome, err := l.takeBackAs(id, item, version)
			if err != nil || outcome != commit.Committed || (first.Loan != nil) != onLoan {
				t.Fatalf("got %s %s, %v", outcome, first.Loan, err)
			}
			next := l.withLock(uuid.New(), item) // lent again meanwhile
			next.version = version + 1
			l.lend(next)
			again, outcome, err := l.takeBackAs(id, item, version)
			if err != nil || outcome != commit.Repeated || !sameAnswer(again, first) {
				t.Errorf("the repeat got %s %+v, %v\nwant %+v", outcome, again, err, first)
			}
			if !json.Valid(again.Item) || field(t, again.Item, "status", "name") != "Available" {
				t.Errorf("the repeat has the item %s, want it as it was", again.Item)
			}
			if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'ITEM_CHECKED_IN' AND payload->>'itemId' `+
				`= $1::text`, item.String()); n != 1 {
				t.Errorf("got %d events of check-ins, want 1", n)
			}
			if n := l.count(`SELECT count(*) FROM {schema}.check_in_operation WHERE item_id = $1`, item); n != 1 {
				t.Errorf("got %d recorded check-ins, want 1", n)
			}
			if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE is_open AND item_id = $1`, item); n != 1 {
				t.Errorf("got %d open loans, want that of the later check-out", n)
			}
			if _, _, err := l.takeBackAs(uuid.New(), item, version); !fault.Is(err, fault.ItemChanged) {
				t.Errorf("another check-in: got %v, want %s", err, fault.ItemChanged)
			}
		})
	}
}

func TestCheckIn_SentManyTimesWithOneIDCountsOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	l.lend(l.withLock(uuid.New(), item))
	id := uuid.New()
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[commit.Outcome]int{}
	answers := map[string]int{}
	for range 10 {
		wg.Go(func() {
			got, outcome, err := l.takeBackAs(id, item, 2)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[outcome]++
			answers[string(got.Loan)+string(got.Item)]++
		})
	}
	wg.Wait()
	if outcomes[commit.Committed] != 1 || outcomes[commit.Repeated] != 9 || len(answers) != 1 {
		t.Errorf("got %v and %d different answers, want one check-in, 9 repeats and one answer", outcomes, len(answers))
	}
	n := l.count(`SELECT count(*) FROM {schema}.patron_action_session WHERE jsonb->>'actionType' = 'Check-in'`)
	if n != 1 {
		t.Errorf("got %d session records, want 1", n)
	}
}

func TestCheckIn_WithTheIDOfAnotherItemIsRefused(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item, other := l.addItem("Available", ""), l.addItem("Available", "")
	id := uuid.New()
	if _, _, err := l.takeBackAs(id, item, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.takeBackAs(id, other, 1); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "check-in of another item") {
		t.Errorf("got %v, want %s", err, fault.Invalid)
	}
	l.wantUntouched(other)

	third, fourth := l.addItem("Available", ""), l.addItem("Available", "")
	id = uuid.New()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, item := range []uuid.UUID{third, fourth} { // neither sees the other's id
		wg.Go(func() { _, _, errs[i] = l.takeBackAs(id, item, 1) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || (!fault.Is(errs[0], fault.Invalid) && !fault.Is(errs[1], fault.Invalid)) {
		t.Errorf("got %v, want one check-in and one refusal", errs)
	}
}

func TestCheckIn_IsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for range 4 {
		if _, err := l.takeBack(l.addItem("Available", ""), 1); err != nil {
			t.Fatal(err)
		}
	}
	l.exec(`UPDATE {schema}.check_in SET created_date = created_date - interval '25 hours' WHERE id IN (SELECT id FROM ` +
		`{schema}.check_in LIMIT 2)`)
	l.exec(`UPDATE {schema}.check_in SET created_date = created_date + interval '25 hours'
		WHERE id = (SELECT id FROM {schema}.check_in WHERE created_date > clock_timestamp() - interval '1 hour' LIMIT 1)`)
	for _, want := range []int{2, 1, 0} {
		if n, err := l.commits.SweepRepeats(l.ctx(), 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.check_in`); n != 1 {
		t.Errorf("%d check-ins are left, want the young one", n)
	}
}
