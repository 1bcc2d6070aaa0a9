// Package locktest is the contract of lock.Store as tests for any store.
package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

// Ager makes a lock older by a duration. A negative one dates it ahead.
type Ager interface {
	Age(ctx context.Context, t *testing.T, id uuid.UUID, by time.Duration)
}

// NewStore returns a store with an empty tenant, the context with that tenant, and an
// Ager.
type NewStore func(t *testing.T) (context.Context, lock.Store, Ager)

// RunStore runs the suite. It calls newStore for each case.
func RunStore(t *testing.T, newStore NewStore) {
	t.Helper()
	for subject, stories := range map[string]map[string][]step{
		"Acquire": acquireStories, "ReleaseAcquisition": releaseAcquisitionStories, "HandOver": handOverStories,
	} {
		for name, story := range stories {
			t.Run(subject+"/"+name, func(t *testing.T) {
				t.Parallel()
				playStory(t, newStore, story)
			})
		}
	}
	for name, test := range map[string]func(*testing.T, NewStore){
		"Acquire/one winner of many":               testOneWinner,
		"Acquire/one request sent many times":      testOneRequest,
		"Acquire/a lock shows what was asked for":  testWholeLock,
		"Acquire/a lock names its last call":       testLastCall,
		"Acquire/tenants do not meet":              testTenantsApart,
		"Acquire/nothing for one who left before":  testLeftBefore,
		"Peek/shows what an acquire would find":    testPeek,
		"Get/outdated locks too":                   testGetOutdated,
		"List/oldest first, in pages":              testListPages,
		"List/of one patron":                       testListOfOne,
		"List/by holder and age":                   testListFiltered,
		"List/nothing there":                       testListEmpty,
		"HandOver/the lock shows the next request": testWholeHandOver,
		"HandOver/tenants do not meet":             testHandOverApart,
		"HandOver/to one of many":                  testOneHandOver,
		"HandOver/nothing for one who left before": testHandOverLeftBefore,
		"ReleaseAcquisition/tenants do not meet":   testReleaseAcquisitionApart,
		"Sweep/only what is outdated for long":     testSweepOld,
		"Sweep/in batches":                         testSweepBatches,
		"Sweep/never what is taken anew meanwhile": testSweepBusy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newStore)
		})
	}
}

// playStory runs the steps of one story against an empty store.
func playStory(t *testing.T, newStore NewStore, story []step) {
	ctx, store, ager := newStore(t)
	patrons := map[string]uuid.UUID{"ann": uuid.New(), "bob": uuid.New()}
	requests := map[string]uuid.UUID{"": uuid.Nil, "R1": uuid.New(), "R2": uuid.New()}
	locks := map[string]lock.Lock{}
	ids := map[uuid.UUID]string{}

	for i, s := range story {
		var code fault.Code
		switch {
		case s.age != "":
			ager.Age(ctx, t, locks[s.age].ID, s.by)
		case s.release != "":
			l, err := store.Release(ctx, locks[s.release].ID)
			code = fault.CodeOf(err)
			s.wantReleased(t, l, locks[s.release], err)
		case s.releaseOf != "":
			l, err := store.ReleaseAcquisition(ctx, patrons[s.releaseOf], requests[s.request])
			code = fault.CodeOf(err)
			s.wantReleased(t, l, locks[s.as], err)
		case s.force != "":
			l, err := store.ForceRelease(ctx, locks[s.force].ID, lock.Note{Reason: "stuck", By: "Ann"})
			code = fault.CodeOf(err)
			s.wantReleased(t, l, locks[s.force], err)
		case s.withdraw != "":
			code = fault.CodeOf(store.Withdraw(ctx, locks[s.withdraw]))
		default:
			req := lock.Request{UserID: patrons[s.acquire], TTL: s.ttl, AcquisitionID: requests[s.request]}
			var l lock.Lock
			var outcome lock.Outcome
			var err error
			if s.handOver != "" {
				l, err = store.HandOver(ctx, locks[s.handOver].ID, req)
			} else {
				l, outcome, err = store.Acquire(ctx, req)
			}
			if code = fault.CodeOf(err); code != "" {
				break
			}
			if outcome != s.outcome {
				t.Errorf("step %d: %s, want %q", i, outcome, s.outcome)
			}
			if first, used := ids[l.ID]; used && first != s.same {
				t.Errorf("step %d: got the id of %q again", i, first)
			}
			if s.same != "" && l.ID != locks[s.same].ID {
				t.Errorf("step %d: got a new id, want that of %q", i, s.same)
			}
			locks[s.as], ids[l.ID] = l, s.as
		}
		if code != s.want {
			t.Fatalf("step %d %+v: code %q, want %q", i, s, code, s.want)
		}
	}
}
