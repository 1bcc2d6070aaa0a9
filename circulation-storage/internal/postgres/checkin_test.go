package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

func TestCheckIn_ClosesTheLoanAndFreesTheItem(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	l.lend(c)
	got, err := l.takeBack(item, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		what       string
		got, value any
	}{
		{what: "the loan", got: field(t, got.Loan, "id"), value: c.loan.String()},
		{what: "its status", got: field(t, got.Loan, "status", "name"), value: "Closed"},
		{what: "its action", got: field(t, got.Loan, "action"), value: "checkedin"},
		{what: "its return date", got: field(t, got.Loan, "returnDate"), value: "2026-03-10T00:00:00Z"},
		{what: "its due date", got: field(t, got.Loan, "dueDate"), value: "2026-03-25T00:00:00Z"},
		{what: "an unknown property", got: field(t, got.Loan, "future"), value: 1.10},
		{what: "the item's status", got: field(t, got.Item, "status", "name"), value: "Available"},
		{what: "its version", got: field(t, got.Item, "_version"), value: 3.0},
		{
			what: "its place", got: field(t, got.Item, "lastCheckIn", "servicePointId"),
			value: field(t, got.Loan, "checkinServicePointId"),
		},
	} {
		if want.got != want.value {
			t.Errorf("%s: got %v, want %v", want.what, want.got, want.value)
		}
	}
	now, _ := field(t, got.Loan, "systemReturnDate").(string)
	if at, err := time.Parse(time.RFC3339, now); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("systemReturnDate is %q, want now", now)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE NOT is_open`); n != 1 {
		t.Errorf("got %d closed loans, want 1", n)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'ITEM_CHECKED_IN' AND payload->>'loanId' = `+
		`$1::text`, c.loan); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.check_out_lock WHERE id = $1`, c.lock); n != 1 {
		t.Error("the check-in touched the patron's lock")
	}

	next := l.withLock(uuid.New(), item)
	next.version = 3
	l.lend(next) // the item can be lent again
}

// FOLIO's older records have no _version until they change.
func TestCommits_OfAnItemWithoutAVersion(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	l.exec(`UPDATE {schema}.item SET jsonb = jsonb - '_version' WHERE id = $1`, item)
	c := l.withLock(uuid.New(), item)
	c.version = 0
	if _, _, err := l.send(c); err != nil {
		t.Fatalf("check-out: %v", err)
	}
	if got, err := l.takeBack(item, 1); err != nil || field(t, got.Item, "_version") != 2.0 {
		t.Errorf("check-in: got %s, %v, want the second version", got.Item, err)
	}
}

func TestCheckIn_OfAnItemThatIsNotOnLoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Missing", "")
	got, err := l.takeBack(item, 1)
	if err != nil || got.Loan != nil || field(t, got.Item, "status", "name") != "Available" {
		t.Errorf("got loan %s, item %s, %v, want an available item alone", got.Loan, got.Item, err)
	}
	for version := range 2 { // without an id the second one is no repeat
		if _, _, err := l.takeBackAs(uuid.Nil, item, version+2); err != nil {
			t.Errorf("without an id: %v", err)
		}
	}
}

func TestCheckIn_KeepsTheDateOfAStatusThatStays(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	got, err := l.takeBack(l.addItem("Available", ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	if date := field(t, got.Item, "status", "date"); date != "2020-01-01T00:00:00.000+00:00" {
		t.Errorf("got the status date %v, want that since when the item is available", date)
	}
}

func TestCheckIn_Refusals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	if _, err := l.takeBack(uuid.New(), 1); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "no item") {
		t.Errorf("unknown item: got %v, want %s", err, fault.Invalid)
	}
	item := l.addItem("Available", "")
	if _, err := l.takeBack(item, 2); !fault.Is(err, fault.ItemChanged) {
		t.Errorf("another version: got %v, want %s", err, fault.ItemChanged)
	}
	l.wantUntouched(item)
}

func TestCheckIn_SentManyTimesAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	l.lend(l.withLock(uuid.New(), item))
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[fault.Code]int{}
	for range 20 {
		wg.Go(func() {
			_, err := l.takeBack(item, 2)
			mu.Lock()
			defer mu.Unlock()
			got[fault.CodeOf(err)]++
		})
	}
	wg.Wait()
	if got[""] != 1 || got[fault.ItemChanged] != 19 {
		t.Errorf("got %v, want one check-in and 19 refusals because the item changed", got)
	}
}

// Only what is committed is recorded, and a repeat adds nothing.
func TestCheckIn_IsRecorded(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Missing", "")
	recorded := func() int { return l.count(`SELECT count(*) FROM {schema}.check_in_operation`) }
	if _, err := l.takeBack(item, 2); !fault.Is(err, fault.ItemChanged) || recorded() != 0 {
		t.Errorf("got %v and %d records of a check-in that is refused", err, recorded())
	}
	if _, err := l.takeBack(item, 1); err != nil {
		t.Fatal(err)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.check_in_operation WHERE item_id = $1 AND jsonb @> '
		{"itemStatusPriorToCheckIn": "Missing", "requestQueueSize": 0}' AND jsonb->>'id' = id::text
		AND jsonb ? 'servicePointId' AND {schema}.record_time(jsonb->>'occurredDateTime') > now() - interval '1 minute'`,
		item); n != 1 || recorded() != 1 {
		t.Errorf("got %d of %d records, want the check-in", n, recorded())
	}
}

// The lock must neither stop a return nor the check-outs of other patrons.
func TestCheckIn_WaitsForNoLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	l.lend(c)
	l.begin(`SELECT FROM {schema}.check_out_lock WHERE id = $1 FOR UPDATE`, c.lock)
	if _, err := l.takeBack(item, 2); err != nil {
		t.Error(err)
	}
}
