package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

func TestService_ReleaseAcquisitionFreesTheLock(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		<-d.startAcquire(d.ctx, req) // its answer is lost
		next := d.startAcquire(d.ctx, lock.Request{UserID: req.UserID, Wait: long})
		if err := d.ReleaseAcquisition(d.ctx, req.UserID, req.AcquisitionID); err != nil {
			t.Fatal(err)
		}
		if got := <-next; got.err != nil || got.took != 0 {
			t.Errorf("the next got %+v, want the lock without any delay", got)
		}
		if d.counts.released != 1 {
			t.Errorf("observed %d releases, want 1", d.counts.released)
		}
	})
}

func TestService_ReleaseAcquisitionLeavesOtherLocks(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		held := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		first := <-d.startAcquire(d.ctx, held)
		waiting := lock.Request{UserID: held.UserID, AcquisitionID: uuid.New(), Wait: long}
		waiter := d.startAcquire(d.ctx, waiting)
		for name, ids := range map[string][2]uuid.UUID{
			"another request":           {held.UserID, uuid.New()},
			"another patron":            {uuid.New(), held.AcquisitionID},
			"a lock without a request":  {d.patron, uuid.Nil},
			"a waiter's for another":    {d.patron, waiting.AcquisitionID},
			"no request for any patron": {uuid.Nil, uuid.Nil},
		} {
			if err := d.ReleaseAcquisition(d.ctx, ids[0], ids[1]); err != nil {
				t.Errorf("%s: %v, want no error", name, err)
			}
		}
		if !isWaiting(waiter) || d.counts.released != 0 || d.store.heldBy(d.ctx, d.patron).UserID != d.patron {
			t.Errorf("observed %+v, the waiter waits: %t, want nothing released", d.counts, isWaiting(waiter))
		}
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Error(err)
		}
		<-waiter
	})
}

func TestService_ReleaseAcquisitionCountsNoOutdatedLock(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		l := lock.Lock{ID: uuid.New(), UserID: uuid.New(), AcquisitionID: uuid.New()} // since the year 1
		d.store.put(d.ctx, l)
		if err := d.ReleaseAcquisition(d.ctx, l.UserID, l.AcquisitionID); err != nil || d.counts.released != 0 {
			t.Errorf("%v, observed %d releases, want none", err, d.counts.released)
		}
		if got := d.store.heldBy(d.ctx, l.UserID); got.ID != uuid.Nil {
			t.Errorf("%+v is still there", got)
		}
	})
}

func TestService_ReleaseAcquisitionEndsItsWaitingCalls(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{AcquisitionID: uuid.New(), Wait: long}
		calls := []<-chan answer{d.startAcquire(d.ctx, req), d.startAcquire(d.ctx, req)}
		next := d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: long})
		if err := d.ReleaseAcquisition(d.ctx, d.patron, req.AcquisitionID); err != nil {
			t.Fatal(err)
		}
		for i, call := range calls {
			if got := <-call; got.code != fault.LockHeld || got.took != 0 {
				t.Errorf("call %d got %+v, want %q at once", i, got, fault.LockHeld)
			}
		}
		d.store.free(d.ctx, d.patron)
		if got := <-next; got.err != nil || got.took > pollSlot {
			t.Errorf("the next got %+v, want the lock soon", got)
		}
		if d.counts.outcomes[lock.Held] != len(calls) || d.counts.outcomes[lock.Cancelled] != 0 {
			t.Errorf("observed %v, want %d calls that found the lock held", d.counts.outcomes, len(calls))
		}
	})
}

func TestService_ReleaseAcquisitionDropsItsPlace(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		const short = 500 * time.Millisecond
		req := lock.Request{AcquisitionID: uuid.New(), Wait: short}
		tried := d.startAcquire(d.ctx, req)
		next := d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: long})
		<-tried
		d.store.free(d.ctx, d.patron)
		if err := d.ReleaseAcquisition(d.ctx, d.patron, req.AcquisitionID); err != nil {
			t.Fatal(err)
		}
		if got := <-next; got.err != nil || got.took != short {
			t.Errorf("the next got %+v, want the lock without any delay", got)
		}
	})
}

// The store grants the lock after the release found none.
func TestService_WithdrawsALockGrantedToAReleasedRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		wait   time.Duration
		leaves bool // its caller, before the release
	}{
		"at the first try":                {wait: 0},
		"in line":                         {wait: long},
		"at the first try, caller absent": {wait: 0, leaves: true},
		"in line, caller absent":          {wait: long, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				req := lock.Request{AcquisitionID: uuid.New(), Wait: tt.wait}
				ctx, leave := context.WithCancel(d.ctx)
				defer leave()
				d.store.beforeAnswer = func() {
					if tt.leaves {
						leave()
					}
					granted := d.store.heldBy(d.ctx, d.patron)
					if err := d.ReleaseAcquisition(d.ctx, d.patron, req.AcquisitionID); err != nil {
						t.Error(err)
					}
					d.store.put(d.ctx, granted)
				}
				if tt.wait == 0 {
					d.store.free(d.ctx, d.patron)
				}
				got := d.startAcquire(ctx, req)
				next := d.startAcquire(d.ctx, lock.Request{Wait: long})
				if tt.wait != 0 {
					d.store.free(d.ctx, d.patron)
				}
				if a := <-got; a.code != fault.LockHeld {
					t.Errorf("the released call got %+v, want %q", a, fault.LockHeld)
				}
				if a := <-next; a.err != nil || a.took > pollSlot {
					t.Errorf("the next got %+v, want the lock soon", a)
				}
			})
		})
	}
}

func TestService_WithdrawsALockRenewedForAReleasedRequest(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		<-d.startAcquire(d.ctx, req)
		d.store.beforeAnswer = func() {
			renewed := d.store.heldBy(d.ctx, req.UserID)
			if err := d.ReleaseAcquisition(d.ctx, req.UserID, req.AcquisitionID); err != nil {
				t.Error(err)
			}
			d.store.put(d.ctx, renewed)
		}
		if got := <-d.startAcquire(d.ctx, req); got.code != fault.LockHeld {
			t.Errorf("got %+v, want %q", got, fault.LockHeld)
		}
		if got := d.store.heldBy(d.ctx, req.UserID); got.ID != uuid.Nil {
			t.Errorf("%+v is still there", got)
		}
	})
}

func TestService_ReleasedRequestMayAcquireAgain(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		first := <-d.startAcquire(d.ctx, req)
		if err := d.ReleaseAcquisition(d.ctx, req.UserID, req.AcquisitionID); err != nil {
			t.Fatal(err)
		}
		if again := <-d.startAcquire(d.ctx, req); again.err != nil || again.l.ID == first.l.ID {
			t.Errorf("got %+v, want a new lock", again)
		}
	})
}

func TestService_ReleaseAcquisitionReturnsAnOutage(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		boom := errors.New("boom")
		d.store.releaseFailed = boom
		waiter := d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: time.Second})
		if err := d.ReleaseAcquisition(d.ctx, d.patron, uuid.New()); !errors.Is(err, boom) || d.counts.released != 0 {
			t.Errorf("got %v and %d releases, want %v and none", err, d.counts.released, boom)
		}
		if err := d.ReleaseAcquisition(t.Context(), d.patron, uuid.New()); fault.CodeOf(err) != fault.Malformed {
			t.Errorf("without a tenant: %v, want %q", err, fault.Malformed)
		}
		synctest.Wait()
		if !isWaiting(waiter) {
			t.Errorf("another request got %+v", <-waiter)
		}
		<-waiter
	})
}
