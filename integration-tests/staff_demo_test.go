package integration_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
)

// The demo library's front desk, and two of its patrons.
const (
	frontDeskID = "bbc823fa-06e7-42c6-87b5-605a5da22f15"
	mateoID     = "f4cae63d-1227-401e-92a8-000d1a700c85" // P-1002
	yukiID      = "ee920018-0a09-4d1e-86d0-295a35bac198" // P-1003
	leilaID     = "f3d9b6d9-c323-41df-a631-8fa18731f93c" // P-1004
)

// startDemo runs the demo library as tenant diku in a new database. Staff sign in by
// password.
func startDemo(t *testing.T) *pair {
	t.Helper()
	p := startPair(t, stack.Options{
		DatabaseURL: createDatabase(t), Circulations: 2,
		CirculationEnv: append(requirePassword(), "RETRY_INTERVAL_MS=300|300"),
	}, 1)
	p.Storage.Tenant, p.ServicePointID = "diku", frontDeskID
	if err := p.Storage.InstallTenant(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(clerk+":"+clerkPassword))
	for i := range p.machines {
		p.machines[i].Tenant, p.machines[i].Header = "diku", http.Header{"Authorization": {basic}}
	}
	return p
}

// startBusyDemo runs a demo library with the lock on and an hour of check-outs, lent and
// refused.
func startBusyDemo(t *testing.T) *pair {
	t.Helper()
	p := startDemo(t)
	for _, change := range []record{
		{"enabled": true, "reason": "The new self-checks send many check-outs at once"},
		{
			"enabled": true, "lockTtlMs": 8000, "retryIntervalsMs": []int{500, 500, 1000},
			"reason": "The self-checks by the door are on a slow line",
		},
	} {
		p.changeSettings(t, 0, change)
	}
	p.reportOneHour(t, p.lendInAllWays(t))
	return p
}

// lendInAllWays sends check-outs with different outcomes and returns their history.
func (p *pair) lendInAllWays(t *testing.T) []schemas.PastCheckOut {
	t.Helper()
	held := p.acquireLock(t, mateoID, outlastsTests)
	all := []struct{ book, patron string }{
		{"B-1001", "P-1003"},
		{"B-1001", "P-1004"}, // already lent
		{"B-1102", "P-1005"}, // declared lost
		{"B-1005", "P-1008"}, // inactive
		{"B-1006", "P-1099"}, // unknown patron
		{"R-1001", "P-1006"}, // not for loan
		{"B-1002", "P-1002"}, // lock not acquired
		{"D-2001", "P-1001"},
		{"D-2002", "P-1001"},
		{"D-2003", "P-1001"},
		{"D-2004", "P-1001"}, // limit reached
		{"B-1003", "P-1005"},
	}
	for i, c := range all {
		p.lendBook(t, i%2, c.book, c.patron)
	}
	p.releaseLock(t, held)
	var list []schemas.PastCheckOut
	waitUntil(t, patience, "the history has all check-outs", func() bool {
		var past schemas.PastCheckOuts
		p.readInto(t, "/check-out-history-storage/check-outs?limit=50", &past)
		list = past.CheckOuts
		return len(list) == len(all)
	})
	return list
}

// reportOneHour reports an hour of check-outs with outcomes like these. Some waited for a
// lock. Reports give each check-out's age, because storage sets the dates.
func (p *pair) reportOneHour(t *testing.T, like []schemas.PastCheckOut) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2)) // each run has the same hour
	lent := like[slices.IndexFunc(like, func(c schemas.PastCheckOut) bool { return c.Outcome == schemas.OutcomeLent })]
	report := [2]schemas.CheckOutReport{}
	for minute := 2; minute < 60; minute++ {
		rush := minute > 20 && minute < 32
		n := r.IntN(4)
		if rush {
			n += 4 + r.IntN(4)
		}
		for range n {
			c := lent
			if r.IntN(4) == 0 {
				c = like[r.IntN(len(like))]
			}
			c.ID, c.RequestID, c.Date, c.Instance = uuid.NewString(), uuid.NewString(), "", ""
			c.AgoMs = int64(minute*60_000 + r.IntN(60_000))
			if c.Outcome == schemas.OutcomeLent {
				c.ItemBarcode, c.UserBarcode = fmt.Sprintf("B-10%02d", 1+r.IntN(28)), fmt.Sprintf("P-100%d", 1+r.IntN(6))
				c.LoanID = uuid.NewString()
				wait := r.IntN(12)
				if rush {
					wait += r.IntN(450)
				}
				c.WaitMs, c.TookMs = &wait, wait+8+r.IntN(20)
			}
			i := r.IntN(2)
			report[i].CheckOuts = append(report[i].CheckOuts, c)
		}
	}
	for i, body := range report {
		c := p.Storage
		c.Header = http.Header{schemas.HolderHeader: {fmt.Sprintf("circulation-%d", i+1)}}
		if _, err := c.Must(t.Context(), http.MethodPost, "/check-out-history-storage/check-outs", body); err != nil {
			t.Fatal(err)
		}
	}
}

// holdSomeLocks replaces all locks by that of a slow check-out and an outdated one. It
// returns the id of the first.
func (p *pair) holdSomeLocks(t *testing.T) string {
	t.Helper()
	p.releaseAllLocks(t)
	p.acquireLockAs(t, mateoID, "circulation-2", uuid.NewString(), time.Millisecond)
	return p.acquireLockAs(t, yukiID, "circulation-1", uuid.NewString(), 3*time.Minute)
}

// releaseAllLocks releases all locks of the library.
func (p *pair) releaseAllLocks(t *testing.T) {
	t.Helper()
	var locks schemas.CheckoutLocks
	p.readInto(t, acquirePath+"?limit=100", &locks)
	for _, lock := range locks.CheckoutLocks {
		callEndpoint(t, p.Storage, http.MethodDelete, acquirePath+"/"+lock.ID, nil) // 404 for an outdated lock
	}
}
