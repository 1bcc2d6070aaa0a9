package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
)

// Callers repeat a request after a lost answer. All copies get one lock, anywhere in line.

func TestService_RepeatGetsItsOwnLockBeforeTheLine(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
		first := <-d.startAcquire(d.ctx, req)
		var line []<-chan answer
		for range lock.MaxWaiting { // the line is full
			line = append(line, d.startAcquire(d.ctx, lock.Request{UserID: req.UserID, Wait: time.Second}))
		}
		for _, wait := range []time.Duration{0, long} {
			req.Wait = wait
			if again := <-d.startAcquire(d.ctx, req); again.err != nil || again.took != 0 || again.l.ID != first.l.ID {
				t.Errorf("the repeat with wait %s got %+v, want %s at once", wait, again, first.l.ID)
			}
		}
		for _, waiter := range line {
			<-waiter
		}
	})
}

func TestService_RepeatInLineGetsTheLockOfTheFirstCopy(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{AcquisitionID: uuid.New(), Wait: long}
		first := d.startAcquire(d.ctx, req)
		between := d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		repeat := d.startAcquire(d.ctx, req)
		d.store.free(d.ctx, d.patron)
		one, two := <-first, <-repeat
		if one.err != nil || two.err != nil || one.l.ID != two.l.ID {
			t.Errorf("got %+v and %+v, want one lock", one, two)
		}
		if one.took > pollSlot || two.took > pollSlot {
			t.Errorf("the first copy got it after %s, the repeat after %s, want %s at most", one.took, two.took, pollSlot)
		}
		if !isWaiting(between) {
			t.Errorf("who stood between got %+v", <-between)
		}
		<-between
	})
}

func TestService_RepeatInLineGetsTheLockGrantedElsewhere(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{UserID: d.patron, AcquisitionID: uuid.New(), Wait: long}
		head := d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		repeat := d.startAcquire(d.ctx, req)
		d.store.hold(d.ctx, req)
		if got := <-repeat; got.err != nil || got.l.AcquisitionID != req.AcquisitionID || got.took > pollSlot {
			t.Errorf("got %+v, want the request's own lock soon", got)
		}
		<-head
	})
}

func TestService_RepeatSharesTheTurnOfTheFirstCopy(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{AcquisitionID: uuid.New(), Wait: long}
		first := d.startAcquire(d.ctx, req)
		d.store.free(d.ctx, d.patron)
		req.Wait = 0
		repeat := <-d.startAcquire(d.ctx, req)
		if one := <-first; repeat.err != nil || one.err != nil || one.l.ID != repeat.l.ID {
			t.Errorf("got %+v and %+v, want one lock", repeat, one)
		}
	})
}

func TestService_RepeatGetsTheLockWhenTheFirstCopyLeft(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{AcquisitionID: uuid.New(), Wait: long}
		ctx, leave := context.WithCancel(d.ctx)
		d.startAcquire(ctx, req)
		repeat := d.startAcquire(d.ctx, req)
		d.store.mu.Lock()
		d.store.beforeAnswer = leave // as the first copy is granted the lock
		d.store.mu.Unlock()
		d.store.free(d.ctx, d.patron)
		got := <-repeat
		synctest.Wait()
		if err := d.Release(d.ctx, got.l.ID); got.err != nil || err != nil {
			t.Errorf("got %+v and could not release it: %v", got, err)
		}
	})
}
