package integration_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// storageAt returns a client of storage instance i.
func (p *pair) storageAt(i int) stack.Client {
	return newClient(p.Storages[i], p.Storage.Tenant)
}

// handOverLimit is the longest time from a release through one storage to the grant
// through the other.
const handOverLimit = 50 * time.Millisecond

// The test is not parallel, because it measures. It measures up to three times, because
// other processes may slow a hand-over once, but not each time.
func TestLock_HandOverBetweenStorages(t *testing.T) {
	p := startPair(t, stack.Options{Storages: 2}, 1)
	for range 3 {
		took := p.measureHandOvers(t, 15)
		if took[len(took)/2] <= handOverLimit {
			return
		}
		t.Logf("waiters needed %v, half of them more than %s", took, handOverLimit)
	}
	t.Errorf("half of the waiters need more than %s, measured three times", handOverLimit)
}

// measureHandOvers releases n locks through one storage, each with a waiter in the other. It
// returns the sorted times from release to grant.
func (p *pair) measureHandOvers(t *testing.T, n int) []time.Duration {
	t.Helper()
	userID := uuid.NewString()
	took := make([]time.Duration, n)
	for i := range took {
		held := p.acquireLock(t, userID, outlastsTests) // through storage 0
		got := make(chan stack.Answer, 1)
		go func() {
			a, err := p.storageAt(1).Do(t.Context(), http.MethodPost, acquirePath, record{
				"userId": userID, "ttlMs": 60000, "waitMs": 10000,
			})
			if err != nil {
				t.Error(err)
			}
			got <- a
		}()
		p.waitForWaiters(t, 1)
		p.releaseLock(t, held)
		start := time.Now()
		lock := readObject(t, <-got, http.StatusCreated)
		took[i] = time.Since(start)
		if lock["id"] == held {
			t.Error("the waiter got the id of the released lock")
		}
		p.releaseLock(t, lock["id"].(string))
	}
	slices.Sort(took)
	return took
}

func TestLock_WaitsForAnotherStorage(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=60000")}, 1)
	userID, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	held := p.acquireLock(t, userID, outlastsTests)
	lending := p.startLending(t.Context(), t, 1, book, patron)
	p.waitForWaiters(t, 1)
	if got, want := p.readState(t, userID, book), (state{Status: "Available", Version: 1, Locks: 1}); got != want {
		t.Errorf("while it waits: got %+v, want %+v", got, want)
	}
	p.releaseLock(t, held)
	readObject(t, lending.awaitAnswer(), http.StatusCreated)
	if got := p.readState(t, userID, book); got != lentOnce {
		t.Errorf("got %+v, want %+v", got, lentOnce)
	}
}

func TestLock_RepeatedAcquire(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2}, 1)
	body := record{"userId": uuid.NewString(), "ttlMs": 60000, "waitMs": 10000, "requestId": uuid.NewString()}
	acquire := func(i int, body record) stack.Answer {
		t.Helper()
		return callEndpoint(t, p.storageAt(i), http.MethodPost, acquirePath, body)
	}
	first := readObject(t, acquire(0, body), http.StatusCreated)
	again := readObject(t, acquire(1, body), http.StatusCreated)
	if first["id"] != again["id"] || again["requestId"] != body["requestId"] {
		t.Errorf("got %v, and again %v", first, again)
	}
	other := setFields(record{"requestId": uuid.NewString()}, record{"userId": body["userId"], "ttlMs": 60000})
	if a := acquire(1, other); a.Status != http.StatusServiceUnavailable || string(a.Body) != "Unable to acquire lock" {
		t.Errorf("another request got %d %s", a.Status, a.Body)
	}
	// After the release, the request id begins a new request. Lock ids are never reused.
	p.releaseLock(t, first["id"].(string))
	if third := readObject(t, acquire(1, body), http.StatusCreated); third["id"] == first["id"] {
		t.Error("the new lock has the id of the released lock")
	}
}

// Storage keeps a waiter's place for 250 ms until the next try. A machine may stall for longer, but not
// in most rounds.
func TestLock_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{
		Circulations:   2,
		CirculationEnv: []string{"CHECKOUT_LOCK_FEATURE_ENABLED=true", "LOCK_TTL_MS=60000", "RETRY_INTERVAL_MS=1000|10000"},
	}, 1)
	const most, want = 20, 4
	inOrder := 0
	for round := 1; inOrder < want; round++ {
		first, within := p.checkOrder(t)
		switch {
		case first:
			inOrder++
		case within <= 150*time.Millisecond: // measured from before the end of the wait
			t.Fatalf("a check-out that tried again within %s was served after a later one", within)
		case round >= most:
			t.Fatalf("a check-out whose first wait ended was served after a later one, all but %d times of %d", inOrder, most)
		}
	}
}

// checkOrder lets two check-outs of one patron wait for a lock. It releases the lock after
// the first wait of the first check-out, and reports whether that one lends its book. The
// limit is 1, so the other one is refused. The next try came within that time.
func (p *pair) checkOrder(t *testing.T) (first bool, within time.Duration) {
	t.Helper()
	const ranOut, atOnce = `checkout_lock_acquires_total{outcome="held"}`, 1 // the first call does not wait
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	held := p.acquireLock(t, userID, outlastsTests)
	before, began := sumMetric(t, p, ranOut), time.Now()
	earlier := p.startLending(t.Context(), t, 0, books[0], patron)
	p.waitForWaiters(t, 1)
	<-time.After(500 * time.Millisecond) // the wait of the earlier check-out must end first
	later := p.startLending(t.Context(), t, 1, books[1], patron)
	waitUntil(t, patience, "the first wait has ended", func() bool {
		asked := time.Now()
		if sumMetric(t, p, ranOut) > before+atOnce {
			return true
		}
		began = asked
		return false
	})
	p.waitForWaiters(t, 2)
	within = time.Since(began)
	p.releaseLock(t, held)
	one, two := earlier.awaitAnswer(), later.awaitAnswer()
	if one.Status+two.Status != http.StatusCreated+http.StatusUnprocessableEntity {
		t.Fatalf("answered %d %s and %d %s, want one 201 and one 422", one.Status, one.Body, two.Status, two.Body)
	}
	return one.Status == http.StatusCreated, within
}
