package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/lockhistory"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
)

// torture says that make torture runs the tests, which are longer then.
var torture = os.Getenv("TORTURE") != ""

// timesInTorture returns how often a test does something: short in make test, long in make torture.
func timesInTorture(short, long int) int {
	if torture {
		return long
	}
	return short
}

// The histories of locks.
const (
	historyTTL    = 300 * time.Millisecond
	lostPercent   = 6 // of requests, and of answers
	clientsPerKey = 3
	historyKeys   = 3
)

// One lock at a time explains what all clients of a patron's lock see.
func TestLock_IsLinearizable(t *testing.T) {
	t.Parallel()
	for seed := range timesInTorture(1, 20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runLockHistory(t, uint64(seed))
		})
	}
}

func runLockHistory(t *testing.T, seed uint64) {
	t.Helper()
	session := "history-" + uuid.NewString()
	p := startPair(t, stack.Options{Storages: 3, DatabaseVia: func(_ int, databaseURL string) string {
		return lockhistory.NameSessions(t, databaseURL, session)
	}}, 1)
	h := lockhistory.New(historyTTL)
	loss := lockhistory.NewLoss(seed, lostPercent)
	var cycles atomic.Int32
	var clients sync.WaitGroup
	total := int32(timesInTorture(10, 25) * clientsPerKey * historyKeys)
	for key := range historyKeys {
		user := uuid.NewString()
		for i := range clientsPerKey {
			number := key*clientsPerKey + i
			c := &lockClient{
				t: t, pair: p, history: h, user: user, number: number, cycles: &cycles, total: total,
				http: &http.Client{Transport: loss, Timeout: patience},
				rng:  rand.New(rand.NewPCG(seed, uint64(number))),
			}
			clients.Go(func() {
				for n := cycles.Add(1); n <= total; n = cycles.Add(1) {
					if n%lockhistory.CyclesPerEnd == 0 {
						if err := lockhistory.EndSessions(t.Context(), p.databaseURL, session); err != nil {
							t.Error(err)
						}
					}
					c.useLock()
				}
			})
		}
	}
	var faults sync.WaitGroup
	for i := range 2 { // two of three storages go, one after the other
		for done := cycles.Load(); done <= total*int32(i+1)/3; done = cycles.Load() {
			waitUntil(t, patience, "the clients go on", func() bool { return cycles.Load() > done })
		}
		faults.Go(func() {
			if err := p.StopStorage(i); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	faults.Wait()
	h.Check(t)
}

// lockClient acquires, renews, releases and loses locks of one patron.
type lockClient struct {
	t       *testing.T
	pair    *pair
	history *lockhistory.History
	user    string
	number  int
	http    *http.Client
	rng     *rand.Rand

	cycles *atomic.Int32
	total  int32
}

// useLock takes the lock once, and does one of the things that end it.
func (c *lockClient) useLock() {
	acquisition := uuid.NewString()
	got := c.acquire(acquisition)
	for range 2 {
		if got.Outcome == lockhistory.Unknown {
			got = c.acquire(acquisition)
		}
	}
	if got.Outcome != lockhistory.Done {
		c.read()
		return
	}
	switch c.rng.IntN(10) {
	case 0: // the lock lives until it is outdated
	case 1:
		if id := c.read(); id != "" {
			c.end(lockhistory.Force, http.MethodPost, id, "/forced-release", record{"reason": "a test", "byName": "Ann"})
		}
	case 2:
		c.acquire(acquisition) // renews it
		fallthrough
	default:
		c.end(lockhistory.Release, http.MethodDelete, got.ID, "", nil)
	}
}

// call sends a call to a storage that runs.
func (c *lockClient) call(method, path string, body any) (stack.Answer, error) {
	first := 0
	if done := c.cycles.Load(); done > c.total*2/3 {
		first = 2
	} else if done > c.total/3 {
		first = 1
	}
	storage := c.pair.storageAt(first + c.rng.IntN(len(c.pair.Storages)-first))
	storage.HTTP = c.http
	return storage.Do(c.t.Context(), method, acquirePath+path, body)
}

func (c *lockClient) acquire(acquisition string) lockhistory.Answer {
	call := lockhistory.Call{Kind: lockhistory.Acquire, Key: c.user, Holder: acquisition}
	return c.history.Do(c.number, call, func() lockhistory.Answer {
		a, err := c.call(http.MethodPost, "", record{
			"userId": c.user, "ttlMs": historyTTL.Milliseconds(), "requestId": acquisition, "waitMs": c.rng.IntN(400),
		})
		var lock struct{ ID string }
		code := fault.Code(a.Header.Get(fault.Header))
		switch {
		case err != nil:
		case a.Status == http.StatusCreated && a.JSON(&lock) == nil:
			return lockhistory.Answer{Outcome: lockhistory.Done, ID: lock.ID}
		case code == fault.LockHeld || code == fault.LockQueueFull: // a waiter may have a place before it
			return lockhistory.Answer{Outcome: lockhistory.Refused}
		}
		return lockhistory.Answer{Outcome: lockhistory.Unknown}
	})
}

// end releases a lock in one of two ways.
func (c *lockClient) end(kind lockhistory.Kind, method, id, path string, body any) {
	c.history.Do(c.number, lockhistory.Call{Kind: kind, Key: c.user, ID: id}, func() lockhistory.Answer {
		a, err := c.call(method, "/"+id+path, body)
		var lock struct{ Outdated bool }
		switch {
		case err != nil:
		case a.Status == http.StatusNotFound:
			return lockhistory.Answer{Outcome: lockhistory.Absent}
		case a.Status == http.StatusNoContent:
			return lockhistory.Answer{Outcome: lockhistory.Done}
		case a.Status == http.StatusOK && a.JSON(&lock) == nil && lock.Outdated: // so there was none
			return lockhistory.Answer{Outcome: lockhistory.Absent}
		case a.Status == http.StatusOK:
			return lockhistory.Answer{Outcome: lockhistory.Done}
		}
		return lockhistory.Answer{Outcome: lockhistory.Unknown}
	})
}

// read returns the id of the lock that is not outdated; empty for none.
func (c *lockClient) read() string {
	return c.history.Do(c.number, lockhistory.Call{Kind: lockhistory.Read, Key: c.user}, func() lockhistory.Answer {
		a, err := c.call(http.MethodGet, "?outdated=false&userId="+c.user, nil)
		var list struct{ CheckoutLocks []struct{ ID string } }
		switch {
		case err != nil || a.Status != http.StatusOK || a.JSON(&list) != nil:
			return lockhistory.Answer{Outcome: lockhistory.Unknown}
		case len(list.CheckoutLocks) == 0:
			return lockhistory.Answer{Outcome: lockhistory.Done}
		}
		return lockhistory.Answer{Outcome: lockhistory.Done, ID: list.CheckoutLocks[0].ID}
	}).ID
}
