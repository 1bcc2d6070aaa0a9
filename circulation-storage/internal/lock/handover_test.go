package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestService_HandsOverInOneStatement(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		second := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
		third := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long, AcquisitionID: uuid.New()})
		asks, peeks := d.store.asks, d.store.peeks
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Fatal(err)
		}
		two := <-second
		synctest.Wait() // the third does not read a lock that was granted just now
		if err := d.Release(d.ctx, two.l.ID); err != nil {
			t.Fatal(err)
		}
		three := <-third
		if d.store.handOvers != 2 || d.store.asks != asks || d.store.peeks != peeks {
			t.Errorf("%d hand-overs, %d acquires and %d reads, want 2 and nothing else", d.store.handOvers, d.store.asks-asks,
				d.store.peeks-peeks)
		}
		if two.err != nil || three.err != nil || two.l.ID == first.l.ID || three.l.ID == two.l.ID {
			t.Errorf("got %+v and %+v, want a new lock each", two, three)
		}
		if err := d.Release(d.ctx, first.l.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("a late release of the first lock: %v, want %q", err, fault.NotFound)
		}
		if got := d.store.heldBy(d.ctx, user); got.ID != three.l.ID {
			t.Errorf("%+v holds the lock, want %+v", got, three.l)
		}
		if d.counts.outcomes[lock.Granted] != 3 || d.counts.released != 2 {
			t.Errorf("observed %+v, want 3 granted and 2 released", d.counts)
		}
	})
}

func TestService_HandsNoLockPastAKeptPlace(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		req := lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: time.Millisecond}
		<-d.startAcquire(d.ctx, req)
		later := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Fatal(err)
		}
		got := <-d.startAcquire(d.ctx, req)
		if got.err != nil || !isWaiting(later) {
			t.Fatalf("the place was kept for %+v, and the next caller waits: %t", got, isWaiting(later))
		}
		if err := errors.Join(d.Release(d.ctx, got.l.ID), (<-later).err); err != nil {
			t.Error(err)
		}
	})
}

func TestService_CommitThatReleasesSparesTheRead(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
		peeks := d.store.peeks
		d.store.free(d.ctx, d.patron)
		d.NoteRelease(d.ctx, d.patron)
		if got := <-waiter; got.err != nil || d.store.peeks != peeks {
			t.Errorf("got %+v after %d reads, want the lock without a read", got, d.store.peeks-peeks)
		}
		d.store.free(d.ctx, d.patron)
		d.NoteRelease(d.ctx, d.patron)
		if got := <-d.startAcquire(d.ctx, lock.Request{}); got.err != nil || d.store.peeks != peeks {
			t.Errorf("later: got %+v after %d reads, want the lock without a read", got, d.store.peeks-peeks)
		}
		d.store.free(d.ctx, d.patron)
		d.startTurn(d.ctx, uuid.New(), 0).end(nil)
		if got := <-d.startAcquire(d.ctx, lock.Request{}); got.err != nil || d.store.peeks != peeks {
			t.Errorf("after a turn: got %+v after %d reads, want the lock without a read", got, d.store.peeks-peeks)
		}
	})
}

// The waiter goes while the store hands the lock over to it.
func TestService_ReleasesALockHandedToAWaiterThatHasGone(t *testing.T) {
	for name, tt := range map[string]struct {
		goAway func(d *harness, req lock.Request, leave context.CancelFunc)
		want   fault.Code
	}{
		"its caller leaves": {
			goAway: func(_ *harness, _ lock.Request, leave context.CancelFunc) { leave() },
			want:   fault.Internal, // context.Canceled
		},
		"its request is released": {
			goAway: func(d *harness, req lock.Request, _ context.CancelFunc) {
				_ = d.ReleaseAcquisition(d.ctx, req.UserID, req.AcquisitionID)
			},
			want: fault.LockHeld,
		},
		"its wait times out": {
			goAway: func(_ *harness, req lock.Request, _ context.CancelFunc) { <-time.After(req.Wait + lock.PlaceKept/2) },
			want:   fault.LockHeld,
		},
	} {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before the store does: %t", name, before), func(t *testing.T) {
				withHarness(t, func(t *testing.T, d *harness) {
					ctx, leave := context.WithCancel(d.ctx)
					defer leave()
					user := uuid.New()
					first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
					req := lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: time.Second}
					gone := d.startAcquire(ctx, req)
					next := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
					d.store.mu.Lock()
					hook := func() {
						tt.goAway(d, req, leave)
						synctest.Wait()
					}
					if before {
						d.store.beforeHandOver = hook
					} else {
						d.store.beforeAnswer = hook
					}
					d.store.mu.Unlock()
					if err := d.Release(d.ctx, first.l.ID); err != nil {
						t.Errorf("the release: %v", err)
					}
					if got := <-gone; got.code != tt.want {
						t.Errorf("the waiter that has gone got %+v, want %q", got, tt.want)
					}
					got := <-next
					if got.err != nil || d.store.heldBy(d.ctx, user).ID != got.l.ID {
						t.Errorf("the next got %+v, want the lock", got)
					}
				})
			})
		}
	}
	t.Run("its wait times out as it gets the lock", func(t *testing.T) {
		withHarness(t, checkHandOversAtTheTimeout)
	})
}

// checkHandOversAtTheTimeout releases the lock at the moment when the first waiter's time is up. The
// scheduler decides what comes first. A waiter with the lock keeps no place, which would delay the
// next one.
func checkHandOversAtTheTimeout(t *testing.T, d *harness) {
	t.Helper()
	served := 0
	for range 200 {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		req := lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: time.Second}
		waiter := d.startAcquire(d.ctx, req)
		next := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
		<-time.After(req.Wait)
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Fatal(err)
		}
		latest := req.Wait + lock.PlaceKept
		if got := <-waiter; got.err == nil {
			served++
			latest = got.took
			if err := d.Release(d.ctx, got.l.ID); err != nil {
				t.Fatal(err)
			}
		}
		got := <-next
		if got.err != nil || got.took > latest {
			t.Fatalf("the next got %+v, want the lock after %s", got, latest)
		}
		if err := d.Release(d.ctx, got.l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if served == 0 {
		t.Error("no waiter got the lock when its time was up")
	}
}

// A copy of the request that the first in line sent gets the same lock.
func TestService_HandsOverToAllCopiesOfARequest(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		req := lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: long}
		one := d.startAcquire(d.ctx, req)
		between := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: time.Second})
		two := d.startAcquire(d.ctx, req)
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Fatal(err)
		}
		a, b := <-one, <-two
		if a.err != nil || b.err != nil || a.l.ID != b.l.ID || a.took != 0 || b.took != 0 || d.store.handOvers != 1 {
			t.Errorf("got %+v and %+v after %d hand-overs, want one lock at once", a, b, d.store.handOvers)
		}
		if got := <-between; got.code != fault.LockHeld {
			t.Errorf("the one between got %+v, want %q", got, fault.LockHeld)
		}
	})
}

// A library that was restored from another one's backup may have the same lock.
func TestService_HandsNothingOverToAnotherTenant(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		waiter := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: time.Second})
		copied := okapi.WithTenant(d.ctx, mustTenant(t, "restored"))
		d.store.put(copied, first.l)
		if err := d.Release(copied, first.l.ID); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := d.store.heldBy(copied, user); got.ID != uuid.Nil || !isWaiting(waiter) {
			t.Errorf("the other tenant's lock is %+v, the waiter waits: %t, want none and true", got, isWaiting(waiter))
		}
		<-waiter
	})
}

// Another process granted the lock to the request of the first in line. That lock is handed
// over to the request once more, while its renewal is under way.
func TestService_WithdrawsALockHandedToACallThatHasOne(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: d.patron, AcquisitionID: uuid.New(), Wait: long}
		waiter := d.startAcquire(d.ctx, req)
		d.store.mu.Lock()
		d.store.beforeAnswer = func() {
			renewed := d.store.heldBy(d.ctx, d.patron)
			_, _ = d.Acquire(d.ctx, lock.Request{UserID: d.patron, TTL: ttl, AcquisitionID: uuid.New()}) // sees the lock's id
			if err := d.Release(d.ctx, renewed.ID); err != nil || d.store.handOvers != 1 {
				t.Errorf("%v after %d hand-overs, want one", err, d.store.handOvers)
			}
		}
		d.store.mu.Unlock()
		d.store.hold(d.ctx, req)
		<-waiter
		if got := d.store.heldBy(d.ctx, d.patron); got.ID != uuid.Nil {
			t.Errorf("%+v is left without a holder", got)
		}
	})
}

func TestService_HandOverThatFailsLeavesTheWaiterInLine(t *testing.T) {
	const slow = 2 * time.Millisecond // the waiter would read the lock meanwhile
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		fail error
		done bool  // the lock is handed over, and the answer is lost
		want error // of the release
	}{
		"the store is away":        {fail: boom, want: boom},
		"its answer is lost":       {fail: boom, done: true, want: boom},
		"a commit keeps the lock":  {fail: lock.ErrHeld()},
		"the lock is outdated now": {fail: fault.New(fault.NotFound, "Lock not found")},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				user := uuid.New()
				first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
				waiter := d.startAcquire(d.ctx, lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: long})
				d.store.handOverFails, d.store.handOverDone = tt.fail, tt.done
				d.store.beforeHandOver = func() { <-time.After(slow) }
				if err := d.Release(d.ctx, first.l.ID); !errors.Is(err, tt.want) {
					t.Errorf("the release: %v, want %v", err, tt.want)
				}
				if tt.want != nil && !tt.done {
					d.store.free(d.ctx, user)
				}
				got := <-waiter
				held := d.store.heldBy(d.ctx, user)
				if got.err != nil || got.took > slow+pollSlot || got.l.ID == first.l.ID || held.ID != got.l.ID {
					t.Errorf("the waiter got %+v, want the lock soon", got)
				}
			})
		})
	}
}

func TestService_HandsNothingOverToAKeptPlace(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		req := lock.Request{UserID: user, AcquisitionID: uuid.New(), Wait: 300 * time.Millisecond}
		<-d.startAcquire(d.ctx, req)
		if err := d.Release(d.ctx, first.l.ID); err != nil || d.store.handOvers != 0 {
			t.Errorf("%v and %d hand-overs, want a release alone", err, d.store.handOvers)
		}
		if got := <-d.startAcquire(d.ctx, req); got.err != nil || got.took != 0 {
			t.Errorf("the next try got %+v, want the lock at once", got)
		}
	})
}
