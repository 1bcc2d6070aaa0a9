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
	"checkoutlock/schemas/okapi"
)

const (
	long     = 10 * time.Second
	pollSlot = 40 * time.Millisecond // the longest time between two polls
)

func TestService_ReleaseWakesTheWaiterAtOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		other := uuid.New()
		first := <-d.startAcquire(d.ctx, lock.Request{UserID: other})
		waiter := d.startAcquire(d.ctx, lock.Request{UserID: other, Wait: long})
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Fatal(err)
		}
		if got := <-waiter; got.err != nil || got.took != 0 || got.l.ID == first.l.ID {
			t.Errorf("got %+v, want a new lock without any delay", got)
		}
		if d.counts.released != 1 || d.counts.outcomes[lock.Granted] != 2 || d.counts.mostly != 1 {
			t.Errorf("observed %+v, want 1 released, 2 granted, 1 waiting", d.counts)
		}
	})
}

func TestService_NoteReleaseWakesTheWaiterAtOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
		d.store.free(d.ctx, d.patron)
		d.NoteRelease(d.ctx, d.patron)
		if got := <-waiter; got.err != nil || got.took != 0 {
			t.Errorf("got %+v, want the lock without any delay", got)
		}
		if d.counts.released != 1 {
			t.Errorf("observed %+v, want 1 released", d.counts)
		}
	})
}

func TestService_PollsForReleasesOfOtherInstances(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
		<-time.After(time.Second)
		d.store.free(d.ctx, d.patron)
		if got := <-waiter; got.err != nil || got.took > time.Second+pollSlot {
			t.Errorf("got %+v, want the lock %s after it was freed at most", got, pollSlot)
		}
	})
}

func TestService_ServesWaitersInOrder(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		var line []<-chan answer
		for range 5 {
			line = append(line, d.startAcquire(d.ctx, lock.Request{Wait: long}))
		}
		d.store.free(d.ctx, d.patron)
		for i := range line {
			got := <-line[i]
			synctest.Wait()
			for j := i + 1; j < len(line); j++ {
				if !isWaiting(line[j]) {
					t.Fatalf("waiter %d was served before %d had finished", j, i)
				}
			}
			if err := errors.Join(got.err, d.Release(d.ctx, got.l.ID)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestService_OnlyTheFirstWaiterPolls(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		var line []<-chan answer
		for range lock.MaxWaiting {
			line = append(line, d.startAcquire(d.ctx, lock.Request{Wait: time.Second}))
		}
		for _, waiter := range line {
			if got := <-waiter; got.code != fault.LockHeld || got.took != time.Second {
				t.Errorf("got %+v, want %q after 1s", got, fault.LockHeld)
			}
		}
		synctest.Wait()
		if d.store.asks != 1 {
			t.Errorf("%d acquires for a held lock, want 1: only the first caller's", d.store.asks)
		}
		if most := int(time.Second/(20*time.Millisecond)) + lock.MaxWaiting; d.store.peeks > most || d.store.peeks < 25 {
			t.Errorf("%d looks in a second, want 25 to %d", d.store.peeks, most)
		}
	})
}

func TestService_NewcomersDoNotOvertake(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
		d.store.free(d.ctx, d.patron) // the waiter has not polled yet
		peeks := d.store.peeks
		for _, req := range []lock.Request{{}, {AcquisitionID: uuid.New()}} {
			if got := <-d.startAcquire(d.ctx, req); got.code != fault.LockHeld || got.took != 0 {
				t.Errorf("a newcomer that does not wait got %+v, want %q at once", got, fault.LockHeld)
			}
		}
		if d.store.peeks != peeks+1 {
			t.Errorf("%d reads by newcomers, want 1: of the request that may have the lock", d.store.peeks-peeks)
		}
		later := d.startAcquire(d.ctx, lock.Request{Wait: 100 * time.Millisecond, AcquisitionID: uuid.New()})
		if got := <-waiter; got.err != nil {
			t.Errorf("the waiter got %v, want the lock", got.err)
		}
		if got := <-later; got.code != fault.LockHeld {
			t.Errorf("a later waiter got %+v, want %q", got, fault.LockHeld)
		}
	})
}

// The late caller was the first to ask, and the other one the first to wait. The lock of the late
// caller's request, which another process granted, is freed as the late caller reads it.
func TestService_ReadOvertakesNoCallerInLine(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		joined := make(chan struct{})
		d.store.afterRefusal = func() { <-joined }
		req := lock.Request{UserID: d.patron, AcquisitionID: uuid.New(), Wait: time.Second}
		late := d.startAcquire(d.ctx, req)
		d.store.mu.Lock()
		d.store.afterRefusal = nil
		d.store.mu.Unlock()
		first := d.startAcquire(d.ctx, lock.Request{Wait: long})
		close(joined)
		synctest.Wait()
		d.store.mu.Lock()
		d.store.beforePeek = func() { // of the first
			d.store.mu.Lock()
			defer d.store.mu.Unlock()
			d.store.beforePeek = func() { d.store.free(d.ctx, d.patron) } // of the late caller
		}
		d.store.mu.Unlock()
		d.store.hold(d.ctx, req)
		one := <-first
		if two := <-late; one.err != nil || one.took > pollSlot || two.code != fault.LockHeld {
			t.Errorf("the first in line got %+v and the late caller %+v, want the lock and %q", one, two, fault.LockHeld)
		}
	})
}

func TestService_FullLineRefusesTheNext(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		leave := context.CancelFunc(nil)
		for i := range lock.MaxWaiting {
			ctx := d.ctx
			if i == 7 {
				ctx, leave = context.WithCancel(ctx)
			}
			d.startAcquire(ctx, lock.Request{Wait: time.Second})
		}
		got := <-d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		var f *fault.Error
		if !errors.As(got.err, &f) || f.Code != fault.LockQueueFull || f.RetryAfter <= 0 {
			t.Errorf("got %+v, want %q with a time to retry", got, fault.LockQueueFull)
		}
		if got := <-d.startAcquire(d.ctx, lock.Request{}); got.code != fault.LockHeld {
			t.Errorf("who does not wait got %+v, want %q", got, fault.LockHeld)
		}
		if got := <-d.startAcquire(d.ctx, lock.Request{UserID: uuid.New(), Wait: time.Second}); got.err != nil {
			t.Errorf("another patron is refused: %v", got.err)
		}
		if got := <-d.startAcquire(okapi.WithTenant(d.ctx, mustTenant(t, "other")),
			lock.Request{Wait: time.Second}); got.err != nil {
			t.Errorf("the patron of another tenant is refused: %v", got.err)
		}
		leave()
		synctest.Wait()
		if !isWaiting(d.startAcquire(d.ctx, lock.Request{Wait: 100 * time.Millisecond})) {
			t.Error("the place of a waiter that left is not given to the next")
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		want := map[lock.Outcome]int{lock.Held: 21, lock.QueueFull: 1, lock.Cancelled: 1, lock.Granted: 2}
		for o, n := range want {
			if d.counts.outcomes[o] != n {
				t.Errorf("observed %d %s, want %d", d.counts.outcomes[o], o, n)
			}
		}
	})
}

func TestService_WaiterThatLeavesBlocksNoOther(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		ctx, leave := context.WithCancel(d.ctx)
		left := d.startAcquire(ctx, lock.Request{Wait: long})
		next := d.startAcquire(d.ctx, lock.Request{Wait: long})
		leave()
		if got := <-left; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who left got %+v", got)
		}
		d.store.free(d.ctx, d.patron)
		if got := <-next; got.err != nil || got.took > pollSlot {
			t.Errorf("the next got %+v, want the lock", got)
		}
	})
}

// The caller leaves as the store grants it the lock.
func TestService_WithdrawsALockGrantedAfterTheCallerLeft(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at the first try": 0, "in line": long} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				ctx, leave := context.WithCancel(d.ctx)
				d.store.beforeAnswer = leave
				if wait == 0 {
					d.store.free(d.ctx, d.patron)
				}
				left := d.startAcquire(ctx, lock.Request{Wait: wait})
				next := d.startAcquire(d.ctx, lock.Request{Wait: long})
				d.store.free(d.ctx, d.patron)
				if got := <-left; !errors.Is(got.err, context.Canceled) {
					t.Errorf("who left got %+v", got)
				}
				if got := <-next; got.err != nil || got.took > pollSlot {
					t.Errorf("the next got %+v, want the lock", got)
				}
			})
		})
	}
}

// The caller that left was in no line, so the withdrawal itself must wake the next.
func TestService_WithdrawalWakesTheWaiterAtOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		granted := make(chan struct{})
		d.store.free(d.ctx, d.patron)
		d.store.beforeAnswer = func() { <-granted }
		ctx, leave := context.WithCancel(d.ctx)
		left := d.startAcquire(ctx, lock.Request{})
		next := d.startAcquire(d.ctx, lock.Request{Wait: long})
		leave()
		close(granted)
		<-left
		if got := <-next; got.err != nil || got.took != 0 {
			t.Errorf("got %+v, want the lock without any delay", got)
		}
	})
}

func TestService_DoesNotMissALockFreedBeforeJoining(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		d.store.afterRefusal = func() { d.store.free(d.ctx, d.patron) }
		if got := <-d.startAcquire(d.ctx, lock.Request{Wait: long}); got.err != nil || got.took != 0 {
			t.Errorf("got %+v, want the lock without any delay", got)
		}
	})
}

// The answer to the first copy may have reached the holder.
func TestService_RepeatThatLeavesKeepsTheLockOfTheFirstCopy(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		first := <-d.startAcquire(d.ctx, req)
		ctx, leave := context.WithCancel(d.ctx)
		d.store.beforeAnswer = leave
		if got := <-d.startAcquire(ctx, req); !errors.Is(got.err, context.Canceled) {
			t.Errorf("the repeat got %+v", got)
		}
		if err := d.Release(d.ctx, first.l.ID); err != nil {
			t.Errorf("the first copy's lock is gone: %v", err)
		}
	})
}

func TestService_FailedWithdrawalIsNoError(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		ctx, leave := context.WithCancel(d.ctx)
		d.store.beforeAnswer, d.store.withdrawFailed = leave, true
		if got := <-d.startAcquire(ctx, lock.Request{UserID: uuid.New()}); !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %+v, want %v", got, context.Canceled)
		}
	})
}

func TestService_StopAnswersAllWaitersAtOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		var line []<-chan answer
		for range 5 {
			line = append(line, d.startAcquire(d.ctx, lock.Request{Wait: long}))
		}
		d.Stop()
		d.Stop() // a second time is fine
		line = append(line, d.startAcquire(d.ctx, lock.Request{Wait: long}))
		for i, waiter := range line {
			if got := <-waiter; got.code != fault.LockHeld || got.took != 0 {
				t.Errorf("waiter %d got %+v, want %q at once", i, got, fault.LockHeld)
			}
		}
	})
}

func TestService_OutageEndsTheWait(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		boom := errors.New("boom")
		waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
		d.store.mu.Lock()
		d.store.fail = boom
		d.store.mu.Unlock()
		if got := <-waiter; !errors.Is(got.err, boom) || got.took > pollSlot {
			t.Errorf("got %+v, want %v at the next look", got, boom)
		}
		if d.counts.outcomes[lock.Failed] != 1 {
			t.Errorf("observed %v, want 1 error", d.counts.outcomes)
		}
	})
}

func TestService_PanicOfTheStoreLeavesNoCall(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		<-d.startAcquire(d.ctx, lock.Request{}) // the lock is known to be held
		d.store.beforePeek = func() { panic("boom") }
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not reach the caller")
				}
			}()
			_, _ = d.Acquire(d.ctx, lock.Request{UserID: d.patron, TTL: ttl, AcquisitionID: uuid.New(), Wait: long})
		}()
		if d.Calls() != 0 || d.Lines() != 0 {
			t.Errorf("%d calls and %d lines are left, want none", d.Calls(), d.Lines())
		}
	})
}

func TestService_RequiresATenant(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		if got := <-d.startAcquire(t.Context(), lock.Request{UserID: uuid.New()}); got.code != fault.Malformed ||
			d.store.asks != 0 {
			t.Errorf("got %+v after %d acquires, want %q", got, d.store.asks, fault.Malformed)
		}
	})
}
