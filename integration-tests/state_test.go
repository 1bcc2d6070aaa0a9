package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// state is all that a check-out of one book by one patron may change.
type state struct {
	Loans   int // of the patron, closed ones too
	History int // entries of such loans that were made
	Status  string
	Version int // of the item
	Events  int // for loans of the book
	Locks   int // of the patron
	// Sessions are the patron's action session records, Requests the open requests.
	Sessions, Requests int
}

// The state of a new book, and of a book that was lent once.
var (
	untouched = state{Status: "Available", Version: 1}
	lentOnce  = state{Loans: 1, History: 1, Status: "Checked out", Version: 2, Events: 1, Sessions: 1}
)

// readState reads the state of a book and a patron.
func (p *pair) readState(t *testing.T, userID, book string) state {
	t.Helper()
	var items struct {
		Items []struct {
			ID      string
			Status  struct{ Name string }
			Version int `json:"_version"`
		}
	}
	p.readInto(t, "/item-storage/items?query="+url.QueryEscape(`barcode=="`+book+`"`), &items)
	if len(items.Items) != 1 {
		t.Fatalf("%d items have the barcode %s", len(items.Items), book)
	}
	item := items.Items[0]
	return state{
		Status: item.Status.Name, Version: item.Version, Events: p.countEvents(t, item.ID),
		History: p.countLent(t, userID),
		Loans:   p.countRecords(t, "/loan-storage/loans?limit=0&query="+url.QueryEscape(`userId=="`+userID+`"`)),
		Locks:   p.countRecords(t, "/check-out-lock-storage?userId="+userID),
		Sessions: p.countRecords(t, "/patron-action-session-storage/patron-action-sessions?limit=0&query="+
			url.QueryEscape(`patronId=="`+userID+`"`)),
		Requests: p.countRecords(t, "/request-storage/requests?limit=0&query="+
			url.QueryEscape(`requesterId=="`+userID+`" and status=="Open*"`)),
	}
}

// readInto decodes a JSON document of storage.
func (p *pair) readInto(t *testing.T, path string, into any) {
	t.Helper()
	a, err := p.Storage.Must(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.JSON(into); err != nil {
		t.Fatal(err)
	}
}

// countRecords returns the totalRecords of a list of storage.
func (p *pair) countRecords(t *testing.T, path string) int {
	t.Helper()
	var list struct{ TotalRecords int }
	p.readInto(t, path, &list)
	return list.TotalRecords
}

// countEvents counts the events in the outbox for loans of an item. No endpoint lists
// events.
func (p *pair) countEvents(t *testing.T, itemID string) int {
	t.Helper()
	var n int
	queryValue(t, p.databaseURL, &n, `SELECT count(*) FROM `+p.tableName("outbox")+
		` WHERE event_type = 'ITEM_CHECKED_OUT' AND payload->>'itemId' = $1`, itemID)
	return n
}

// countLent counts the patron's loans in the history of loans.
func (p *pair) countLent(t *testing.T, userID string) (n int) {
	t.Helper()
	queryValue(t, p.databaseURL, &n, `SELECT count(*) FROM `+p.tableName("loan_history")+
		` WHERE jsonb->>'operation' = 'I' AND jsonb->'loan'->>'userId' = $1`, userID)
	return n
}

// acquireLock acquires a patron's lock without a check-out and returns its id.
func (p *pair) acquireLock(t testing.TB, userID string, ttl time.Duration) string {
	t.Helper()
	a, err := p.Storage.Must(t.Context(), http.MethodPost, acquirePath, map[string]any{
		"userId": userID, "ttlMs": ttl.Milliseconds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lock struct{ ID string }
	if err := a.JSON(&lock); err != nil {
		t.Fatal(err)
	}
	return lock.ID
}

// releaseLock releases a lock; it must exist.
func (p *pair) releaseLock(t testing.TB, id string) {
	t.Helper()
	if _, err := p.Storage.Must(t.Context(), http.MethodDelete, acquirePath+"/"+id, nil); err != nil {
		t.Fatal(err)
	}
}

// waitForWaiters waits until exactly n callers wait for locks in all storages.
func (p *pair) waitForWaiters(t testing.TB, n float64) {
	t.Helper()
	waitUntil(t, patience, fmt.Sprintf("%v callers wait for a lock", n),
		func() bool { return sumMetric(t, p, "checkout_lock_waiting") == n })
}

// atStep returns a hook that calls do each time a check-out of an instance reaches the step. The
// check-out continues after the return.
func atStep(instance int, at circulation.Step, do func()) func(context.Context, int, circulation.Step) {
	return func(_ context.Context, i int, step circulation.Step) {
		if i == instance && step == at {
			do()
		}
	}
}

// lending is a check-out under way.
type lending struct{ answered chan stack.Answer }

// startLending begins a check-out on instance i. The end of ctx hangs up.
func (p *pair) startLending(ctx context.Context, t *testing.T, i int, book, patron string) lending {
	t.Helper()
	return startCheckOut(ctx, t, p.machines[i], p.newCheckOut(book, patron))
}

// startCheckOut sends a check-out in another goroutine.
func startCheckOut(ctx context.Context, t *testing.T, machine stack.Client, body any) lending {
	t.Helper()
	l := lending{answered: make(chan stack.Answer, 1)}
	go func() {
		a, err := machine.Do(ctx, http.MethodPost, checkOutPath, body)
		if err != nil && ctx.Err() == nil {
			t.Errorf("check-out: %v", err)
		}
		l.answered <- a
	}()
	return l
}

// awaitAnswer returns the answer, the zero value if the machine hung up.
func (l lending) awaitAnswer() stack.Answer { return <-l.answered }
