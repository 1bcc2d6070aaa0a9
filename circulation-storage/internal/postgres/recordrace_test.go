package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

const rivals = 20

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

func TestOfParallelUpdatesOfOneVersionOneWins(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	item := l.create(t, records.Item(), l.newItem(t, l.holdings(t, l.location(t, "main")), "b"))
	changes := make([]records.Record, rivals)
	for i := range changes {
		item["volume"] = fmt.Sprint(i)
		changes[i] = parse(t, records.Item(), item, item.ID())
	}
	wantOneWinner(t, race(rivals, func(i int) error { return l.store.Update(l.in(t), records.Item(), changes[i]) }), fault.Conflict)
	if v, _ := l.get(t, records.Item(), item.ID()).Version(); v != 2 {
		t.Errorf("_version is %d, want 2", v)
	}
}

func TestOfParallelItemsWithOneBarcodeOneIsStored(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	o := l.newItem(t, l.holdings(t, l.location(t, "main")), "Same")
	items := make([]records.Record, rivals)
	for i := range items {
		if i%2 == 0 {
			o["barcode"] = "sAME"
		}
		items[i] = parse(t, records.Item(), o, "")
	}
	wantOneWinner(t, race(rivals, func(i int) error {
		_, err := l.store.Create(l.in(t), records.Item(), items[i])
		return err
	}), fault.Invalid)
}

func TestOfParallelOpenLoansOfOneItemOneIsStored(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	loans := make([]records.Record, rivals)
	item := uuid.NewString()
	for i := range loans {
		loans[i] = parse(t, records.Loan(), newLoan(item, uuid.NewString()), "")
	}
	wantOneWinner(t, race(rivals, func(i int) error {
		_, err := l.store.Create(l.in(t), records.Loan(), loans[i])
		return err
	}), fault.Invalid)
	if got := l.unfenced.Load(); got != 1 {
		t.Errorf("%d loans reported as written past the fence, want 1", got)
	}
}

func TestParallelPutsOfOneNewLoanAllSucceed(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	loan := parse(t, records.Loan(), newLoan(uuid.NewString(), uuid.NewString()), "")
	codes := race(rivals, func(int) error { return l.store.Update(l.in(t), records.Loan(), loan) })
	if codes[""] != rivals {
		t.Errorf("got %v, want %d successes", codes, rivals)
	}
	if got := l.unfenced.Load(); got != 1 {
		t.Errorf("%d loans reported as written past the fence, want 1", got)
	}
}

// Whoever comes first, in the end every item stands where its holdings record is.
func TestItemsAndTheirHoldingsChangedInParallelAgree(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	main, annex := l.location(t, "main"), l.location(t, "annex")
	var holdings [rivals]records.Record
	var items [rivals]records.Record
	for i := range rivals {
		id := l.holdings(t, main)
		holdings[i] = l.get(t, records.Holdings(), id)
		holdings[i]["temporaryLocationId"] = annex
		holdings[i] = parse(t, records.Holdings(), holdings[i], id)
		items[i] = parse(t, records.Item(), l.newItem(t, id, fmt.Sprint(i)), "")
	}
	codes := race(2*rivals, func(i int) error {
		if i%2 == 0 {
			return l.store.Update(l.in(t), records.Holdings(), holdings[i/2])
		}
		_, err := l.store.Create(l.in(t), records.Item(), items[i/2])
		return err
	})
	if codes[""] != 2*rivals {
		t.Fatalf("got %v, want %d successes", codes, 2*rivals)
	}
	for _, item := range items {
		if got := l.get(t, records.Item(), item.ID()).Text("effectiveLocationId"); got != annex {
			t.Errorf("an item is at %s, want the annex %s", got, annex)
		}
	}
}
