package postgres_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestCheckOut_WritesLoanItemAndEvent(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("In transit", `,"inTransitDestinationServicePointId":"d","barcode":"42"`)
	c := l.withLock(uuid.New(), item)
	got := l.lend(c)

	for _, want := range []struct {
		what       string
		got, value any
	}{
		{what: "the loan's status", got: field(t, got.Loan, "status", "name"), value: "Open"},
		{what: "an unknown property", got: field(t, got.Loan, "future"), value: 1.10},
		{what: "the item's status", got: field(t, got.Item, "status", "name"), value: "Checked out"},
		{what: "its version", got: field(t, got.Item, "_version"), value: 2.0},
		{what: "its destination", got: field(t, got.Item, "inTransitDestinationServicePointId"), value: nil},
		{what: "its barcode", got: field(t, got.Item, "barcode"), value: "42"},
	} {
		if want.got != want.value {
			t.Errorf("%s: got %v, want %v", want.what, want.got, want.value)
		}
	}
	date, _ := field(t, got.Item, "status", "date").(string)
	if at, err := time.Parse(time.RFC3339, date); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("the status has the date %q, want now", date)
	}
	var loan, stored string
	err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT l.jsonb::text, i.jsonb::text
		FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id WHERE l.id = $1 AND l.is_open
		AND l.user_id = $2`), c.loan, c.user).Scan(&loan, &stored)
	if err != nil || !sameJSON(t, got.Loan, loan) || !sameJSON(t, got.Item, stored) {
		t.Errorf("answered %s and %s, stored %s and %s, %v", got.Loan, got.Item, loan, stored, err)
	}
	events := l.count(`SELECT count(*) FROM {schema}.outbox WHERE event_type = 'ITEM_CHECKED_OUT'
		AND payload @> jsonb_build_object('loanId', $1::text, 'userId', $2::text, 'itemId', $3::text, 'dueDate',
		'2026-03-25T00:00:00Z')`, c.loan, c.user, item)
	if events != 1 {
		t.Errorf("got %d events, want 1", events)
	}
}

func TestCheckOut_Refusals(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	tests := map[string]struct {
		change func(*lending)
		code   fault.Code
	}{
		"no such lock":           {func(c *lending) { c.lock = uuid.New() }, fault.LockLost},
		"lock of another patron": {func(c *lending) { c.lock = l.lock(uuid.New()) }, fault.LockLost},
		"lock released":          {func(c *lending) { _, _ = l.locks.Release(l.ctx(), c.lock) }, fault.LockLost},
		"lock taken over": {
			func(c *lending) { _, _, _ = l.locks.Acquire(l.ctx(), lock.Request{UserID: c.user, TTL: 0}) }, fault.LockLost,
		},
		"settings of another time": {func(c *lending) { c.settings = "4711" }, fault.SettingsChanged},
		"malformed settings":       {func(c *lending) { c.settings = "1' OR '1'='1" }, fault.SettingsChanged},
		"item of another version":  {func(c *lending) { c.version = 2 }, fault.ItemChanged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := l.addItem("Available", "")
			c := l.withLock(uuid.New(), item)
			tt.change(&c)
			if _, _, err := l.send(c); !fault.Is(err, tt.code) {
				t.Errorf("got %v, want %s", err, tt.code)
			}
			l.wantUntouched(item)
		})
	}
	t.Run("unknown item", func(t *testing.T) {
		t.Parallel()
		item := uuid.New()
		if _, _, err := l.send(l.withLock(uuid.New(), item)); !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v, want %s", err, fault.Invalid)
		}
		l.wantUntouched(item)
	})
	t.Run("item with an open loan though it is available", func(t *testing.T) {
		t.Parallel()
		item := l.addItem("Available", "")
		l.lend(l.withLock(uuid.New(), item))
		l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"_version":1,"status":{"name":"Available"}}' WHERE id = $1`, item)
		_, _, err := l.send(l.withLock(uuid.New(), item))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Invalid ||
			f.Msg != "Cannot have more than one open loan for the same item" {
			t.Errorf("got %v, want FOLIO's message", err)
		}
	})
}

func TestCheckOut_CommitsUnderAnOutdatedLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	l.exec(`UPDATE {schema}.check_out_lock SET creation_date = creation_date - interval '1 day'`)
	l.lend(c)
}

func TestCheckOut_RepeatAfterReleaseReturnsTheSameLoan(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	first := l.lend(c)
	if _, err := l.locks.Release(l.ctx(), c.lock); err != nil {
		t.Fatal(err)
	}
	again, outcome, err := l.send(c)
	if err != nil || outcome != commit.Repeated || field(t, again.Loan, "id") != field(t, first.Loan, "id") ||
		!again.Repeated || first.Repeated {
		t.Errorf("got %+v, %s, %v, want the loan %s again", again, outcome, err, first.Loan)
	}
	if field(t, again.Item, "_version") != 2.0 || l.count(`SELECT count(*) FROM {schema}.outbox`) != 1 {
		t.Errorf("the repeat wrote: item %s", again.Item)
	}

	other := c
	other.user = uuid.New()
	if _, _, err := l.send(other); !fault.Is(err, fault.Invalid) {
		t.Errorf("same loan id, another patron: got %v, want %s", err, fault.Invalid)
	}
	other = l.withLock(c.user, l.addItem("Available", ""))
	other.loan = c.loan
	if _, _, err := l.send(other); !fault.Is(err, fault.Invalid) {
		t.Errorf("same loan id, another item: got %v, want %s", err, fault.Invalid)
	}
	l.wantUntouched(other.item)
}

// A client that got no answer repeats the commit while the first one runs.
func TestCheckOut_SentManyTimesAtOnceLendsOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for name, c := range map[string]lending{
		"with a lock":    l.withLock(uuid.New(), l.addItem("Available", "")),
		"without a lock": l.withoutLock(l.addItem("Available", "")),
	} {
		got := sendAll(l, repeat(c, 20))
		if got[string(commit.Committed)] != 1 || got[string(commit.Repeated)] != 19 {
			t.Errorf("%s: got %v, want one committed and 19 repeated", name, got)
		}
	}
}

func TestCheckOut_OneItemForTwentyPatrons(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	var all []lending
	for range 20 {
		all = append(all, l.withLock(uuid.New(), item))
	}
	got := sendAll(l, all)
	if got[string(commit.Committed)] != 1 || got[string(fault.ItemChanged)] != 19 {
		t.Errorf("got %v, want one committed and 19 refusals because the item changed", got)
	}
	if loans := l.count(`SELECT count(*) FROM {schema}.loan`); loans != 1 {
		t.Errorf("got %d loans, want 1", loans)
	}
}

// One loan id for several items: such commits lock different rows of items.
func TestCheckOut_OneLoanIDForTwentyItems(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	first := l.withoutLock(uuid.New())
	all := repeat(first, 20)
	for i := range all {
		all[i].item = l.addItem("Available", "")
	}
	got := sendAll(l, all)
	if got[string(commit.Committed)] != 1 || got[string(fault.Invalid)] != 19 {
		t.Errorf("got %v, want one committed and 19 refused", got)
	}
	if lent := l.count(`SELECT count(*) FROM {schema}.item WHERE jsonb->'status'->>'name' = 'Checked out'`); lent != 1 {
		t.Errorf("got %d items lent, want 1", lent)
	}
}

func repeat(c lending, n int) []lending {
	all := make([]lending, n)
	for i := range all {
		all[i] = c
	}
	return all
}

// sendAll sends the check-outs at once and counts their outcomes and fault codes.
func sendAll(l harness, all []lending) map[string]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[string]int{}
	for _, c := range all {
		wg.Go(func() {
			_, outcome, err := l.send(c)
			mu.Lock()
			defer mu.Unlock()
			got[string(outcome)+string(fault.CodeOf(err))]++
		})
	}
	wg.Wait()
	return got
}

func TestCommits_AreAllOrNothing(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	lent, item := l.addItem("Available", ""), l.addItem("Available", "")
	l.lend(l.withLock(uuid.New(), lent))
	l.exec(`ALTER TABLE {schema}.outbox ADD CONSTRAINT outbox_is_full CHECK (false) NOT VALID`)

	c := l.withLock(uuid.New(), item)
	if _, _, err := l.send(c); !fault.Is(err, fault.Internal) {
		t.Errorf("check-out: got %v, want %s", err, fault.Internal)
	}
	l.wantUntouched(item)
	if _, err := l.takeBack(lent, 2); !fault.Is(err, fault.Internal) {
		t.Errorf("check-in: got %v, want %s", err, fault.Internal)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id
		WHERE l.is_open AND i.jsonb->>'_version' = '2'`); n != 1 {
		t.Errorf("got %d items still lent, want 1", n)
	}

	l.exec(`ALTER TABLE {schema}.outbox DROP CONSTRAINT outbox_is_full`)
	l.lend(c) // the failure left nothing
}

// Through PgBouncer, pgx does not prepare statements and must guess types.
func TestCommits_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l = l.on(openWith(t, pooled))
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	c.limit = 1
	l.lend(c)
	c.loan, c.item = uuid.New(), l.addItem("Available", "")
	l.wantCount("exec mode", c, 1)
	if _, err := l.takeBack(item, 2); err != nil {
		t.Error(err)
	}
	l.lend(l.withoutLock(l.addItem("Available", "")))
	l.lend(l.takingLock(uuid.New(), l.addItem("Available", "")))
	if _, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, "")); err != nil {
		t.Error(err)
	}
}

func TestCommits_NeedAnInstalledTenant(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c := lending{loan: uuid.New(), user: uuid.New(), item: uuid.New(), lock: uuid.New(), version: 1}
	var err error
	if l.id, err = okapi.ParseTenant("unknown"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.send(c); !fault.Is(err, fault.UnknownTenant) {
		t.Errorf("got %v, want %s", err, fault.UnknownTenant)
	}
	parsed, err := commit.ParseCheckOut(c.body())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.commits.CheckOut(t.Context(), parsed); !fault.Is(err, fault.Malformed) {
		t.Errorf("no tenant: got %v, want %s", err, fault.Malformed)
	}
}
