package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

const rivals = 20

// warm is the same library through a pool whose connections are all open. Otherwise the first write
// ends before the others have a connection, and nothing races.
func (l library) warm(t *testing.T) library {
	t.Helper()
	l = l.alone(t)
	for range l.db.Pool().Config().MaxConns {
		c, err := l.db.Pool().Acquire(l.in(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	return l
}

// race runs do in parallel, started together, and returns how often each code
// came back; "" counts the successes.
func race(n int, do func(i int) error) map[fault.Code]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	start, codes := make(chan struct{}), map[fault.Code]int{}
	for i := range n {
		wg.Go(func() {
			<-start
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			codes[fault.CodeOf(err)]++
		})
	}
	close(start)
	wg.Wait()
	return codes
}

func wantOneWinner(t *testing.T, codes map[fault.Code]int, losers fault.Code) {
	if codes[""] != 1 || codes[losers] != rivals-1 {
		t.Errorf("got %v, want 1 success and %d times %s", codes, rivals-1, losers)
	}
}

func TestRecordStore_OneOfParallelUpdatesOfAVersionWins(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	item := l.create(t, records.Item, l.newItem(t, l.holdings(t, l.location(t, "main")), "b"))
	changes := make([]records.Record, rivals)
	for i := range changes {
		item["volume"] = fmt.Sprint(i)
		changes[i] = parse(t, records.Item, item, item.ID())
	}
	wantOneWinner(t, race(rivals, func(i int) error { return l.store.Update(l.in(t), records.Item, changes[i]) }),
		fault.Conflict)
	if v, _ := l.get(t, records.Item, item.ID()).Version(); v != 2 {
		t.Errorf("_version is %d, want 2", v)
	}
}

func TestRecordStore_OneOfParallelItemsWithOneBarcodeIsStored(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	o := l.newItem(t, l.holdings(t, l.location(t, "main")), "Same")
	items := make([]records.Record, rivals)
	for i := range items {
		if i%2 == 0 {
			o["barcode"] = "sAME"
		}
		items[i] = parse(t, records.Item, o, "")
	}
	wantOneWinner(t, race(rivals, func(i int) error {
		_, err := l.store.Create(l.in(t), records.Item, items[i])
		return err
	}), fault.Invalid)
}

func TestRecordStore_OneOfParallelOpenLoansOfAnItemIsStored(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	loans := make([]records.Record, rivals)
	item := uuid.NewString()
	for i := range loans {
		loans[i] = parse(t, records.Loan, newLoan(item, uuid.NewString()), "")
	}
	wantOneWinner(t, race(rivals, func(i int) error {
		_, err := l.store.Create(l.in(t), records.Loan, loans[i])
		return err
	}), fault.Invalid)
	if got := l.unfenced.Load(); got != 1 {
		t.Errorf("%d loans reported as written past the fence, want 1", got)
	}
}

// runBehind runs write while another transaction has run statement. That one commits only
// after write waits for it.
func (l library) runBehind(t *testing.T, statement string, write func() error) error {
	t.Helper()
	tx, err := l.db.Pool().Begin(l.in(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(l.in(t)) }()
	if _, err := tx.Exec(l.in(t), strings.ReplaceAll(statement, "{schema}", postgres.SchemaName(l.id))); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- write() }()
	waitUntilBlocked(l.in(t), t, lockTable{l.db, l.id})
	if err := tx.Commit(l.in(t)); err != nil {
		t.Fatal(err)
	}
	return <-done
}

func TestRecordStore_PutOfALoanThatAnotherCreatesMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	item := uuid.NewString()
	loan := parse(t, records.Loan, newLoan(item, uuid.NewString()), "")
	err := l.runBehind(t, `INSERT INTO {schema}.loan (id, jsonb) VALUES ('`+loan.ID()+`', '{"status": {"name": "Open"}}')`,
		func() error { return l.store.Update(l.in(t), records.Loan, loan) })
	if err != nil {
		t.Fatalf("got %v, want the loan updated", err)
	}
	if got := l.get(t, records.Loan, loan.ID()).Text("itemId"); got != item {
		t.Errorf("itemId is %q, want %q", got, item)
	}
	if got := l.unfenced.Load(); got != 0 {
		t.Errorf("%d loans reported as opened, want 0: it was open already", got)
	}
}

func TestRecordStore_PutOfAnItemThatAnotherChangesMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	item := l.create(t, records.Item, l.newItem(t, l.holdings(t, l.location(t, "main")), "b"))
	err := l.runBehind(t, `UPDATE {schema}.item SET jsonb = jsonb || '{"_version": 2}'`,
		func() error { return l.update(t, records.Item, item) })
	wantCode(t, err, fault.Conflict)
}

func TestRecordStore_ItemWhoseHoldingsMoveMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	annex := l.location(t, "annex")
	item := parse(t, records.Item, l.newItem(t, l.holdings(t, l.location(t, "main")), "b"), "")
	err := l.runBehind(t, `UPDATE {schema}.holdings_record SET jsonb = jsonb || '{"temporaryLocationId": "`+annex+`"}'`,
		func() error {
			_, err := l.store.Create(l.in(t), records.Item, item)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.get(t, records.Item, item.ID()).Text("effectiveLocationId"); got != annex {
		t.Errorf("the item is at %s, want the annex %s", got, annex)
	}
}

// In any order of the writes, every item ends at the location of its holdings record.
func TestRecordStore_ItemsAgreeWithHoldingsChangedInParallel(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).warm(t)
	main, annex := l.location(t, "main"), l.location(t, "annex")
	var holdings [rivals]records.Record
	var items [rivals]records.Record
	for i := range rivals {
		id := l.holdings(t, main)
		holdings[i] = l.get(t, records.Holdings, id)
		holdings[i]["temporaryLocationId"] = annex
		holdings[i] = parse(t, records.Holdings, holdings[i], id)
		items[i] = parse(t, records.Item, l.newItem(t, id, fmt.Sprint(i)), "")
	}
	codes := race(2*rivals, func(i int) error {
		if i%2 == 0 {
			return l.store.Update(l.in(t), records.Holdings, holdings[i/2])
		}
		_, err := l.store.Create(l.in(t), records.Item, items[i/2])
		return err
	})
	if codes[""] != 2*rivals {
		t.Fatalf("got %v, want %d successes", codes, 2*rivals)
	}
	for _, item := range items {
		if got := l.get(t, records.Item, item.ID()).Text("effectiveLocationId"); got != annex {
			t.Errorf("an item is at %s, want the annex %s", got, annex)
		}
	}
}

// A client sends a new setting twice, because its first call got no answer.
func TestRecordStore_SettingThatIsSentTwiceAtOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	id := uuid.NewString()
	setting := parse(t, records.CirculationSetting, object{"id": id, "name": "sent-twice", "value": object{"n": 1}}, "")
	err := l.runBehind(t, `INSERT INTO {schema}.circulation_settings (id, jsonb)
		VALUES ('`+id+`', '{"id": "`+id+`", "name": "sent-twice"}')`, func() error {
		_, err := l.store.Create(l.in(t), records.CirculationSetting, setting)
		return err
	})
	if err != nil {
		t.Errorf("got %v, want the setting written over itself", err)
	}
	setting["name"] = "another"
	_, err = l.store.Create(l.in(t), records.CirculationSetting, setting)
	wantCode(t, err, fault.Invalid)
}
