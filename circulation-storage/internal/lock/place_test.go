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

// startRetries acquires as a check-out does: once per wait and a last time without one, all with
// one acquisition id. It returns once the caller waits or has its answer.
func (d *harness) startRetries(tries ...time.Duration) <-chan answer {
	req := lock.Request{UserID: d.patron, TTL: ttl, AcquisitionID: uuid.New()}
	got := make(chan answer, 1)
	start := time.Now()
	go func() {
		var l lock.Lock
		var err error
		for _, wait := range append(tries, 0) {
			req.Wait = wait
			if l, err = d.Acquire(d.ctx, req); err == nil {
				break
			}
		}
		got <- answer{l, fault.CodeOf(err), err, time.Since(start)}
	}()
	synctest.Wait()
	return got
}

func TestService_ServesTheFirstToComeOverAllTries(t *testing.T) {
	t.Parallel()
	tries := []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second}
	for _, freed := range []time.Duration{430, 490, 505, 900, 950, 1010, 1450, 1990, 1999} {
		freed *= time.Millisecond
		t.Run("freed after "+freed.String(), func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				const apart = 420 * time.Millisecond
				first := d.startRetries(tries...)
				<-time.After(apart)
				second := d.startRetries(tries...)
				<-time.After(freed - apart)
				d.store.free(d.ctx, d.patron)
				one := <-first
				if one.err != nil || one.took > freed+pollSlot {
					t.Fatalf("the first got %+v, want the lock", one)
				}
				synctest.Wait()
				if !isWaiting(second) {
					t.Fatalf("the second got %+v while the first has the lock", <-second)
				}
				if err := d.Release(d.ctx, one.l.ID); err != nil {
					t.Fatal(err)
				}
				if two := <-second; two.err != nil || two.took > freed-apart+pollSlot {
					t.Errorf("the second got %+v, want the lock after the first", two)
				}
			})
		})
	}
}

func TestService_KeepsAPlaceAnywhereInLine(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		line := []<-chan answer{
			d.startAcquire(d.ctx, lock.Request{Wait: long}),
			d.startRetries(300*time.Millisecond, 300*time.Millisecond, long),
			d.startAcquire(d.ctx, lock.Request{Wait: long}),
			d.startRetries(500*time.Millisecond, long),
			d.startAcquire(d.ctx, lock.Request{Wait: long}),
		}
		<-time.After(time.Second)
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

func TestService_LastTryUsesItsPlace(t *testing.T) {
	const short = 300 * time.Millisecond
	t.Run("and wins if it is first", func(t *testing.T) {
		withHarness(t, func(t *testing.T, d *harness) {
			req := lock.Request{AcquisitionID: uuid.New(), Wait: short}
			tried := d.startAcquire(d.ctx, req)
			behind := d.startAcquire(d.ctx, lock.Request{Wait: long})
			<-tried
			d.store.free(d.ctx, d.patron)
			req.Wait = 0
			got := <-d.startAcquire(d.ctx, req)
			if got.err != nil {
				t.Fatalf("got %+v, want the lock", got)
			}
			if !isWaiting(behind) {
				t.Errorf("the one behind got %+v", <-behind)
			}
			if err := d.Release(d.ctx, got.l.ID); err != nil {
				t.Fatal(err)
			}
			if next := <-behind; next.err != nil || next.took != short {
				t.Errorf("the one behind got %+v, want the lock at once", next)
			}
		})
	})
	t.Run("and loses if another is before it", func(t *testing.T) {
		withHarness(t, func(t *testing.T, d *harness) {
			before := d.startAcquire(d.ctx, lock.Request{Wait: long})
			req := lock.Request{AcquisitionID: uuid.New(), Wait: short}
			<-d.startAcquire(d.ctx, req)
			d.store.free(d.ctx, d.patron)
			req.Wait = 0
			if got := <-d.startAcquire(d.ctx, req); got.code != fault.LockHeld || got.took != 0 {
				t.Errorf("got %+v, want %q at once", got, fault.LockHeld)
			}
			if got := <-before; got.err != nil {
				t.Errorf("the one before got %+v, want the lock", got)
			}
		})
	})
	t.Run("and gives it up", func(t *testing.T) {
		withHarness(t, func(t *testing.T, d *harness) {
			req := lock.Request{AcquisitionID: uuid.New(), Wait: short}
			tried := d.startAcquire(d.ctx, req)
			behind := d.startAcquire(d.ctx, lock.Request{Wait: long})
			<-tried
			req.Wait = 0
			<-d.startAcquire(d.ctx, req)
			d.store.free(d.ctx, d.patron)
			if got := <-behind; got.err != nil || got.took > short+pollSlot {
				t.Errorf("the one behind got %+v, want the lock without a delay by the place", got)
			}
		})
	})
}

func TestService_AbandonedPlaceDelaysTheNextBriefly(t *testing.T) {
	for name, free := range map[string]func(d *harness, held lock.Lock) error{
		"freed here": func(d *harness, held lock.Lock) error { return d.Release(d.ctx, held.ID) },
		"freed elsewhere": func(d *harness, _ lock.Lock) error {
			d.store.free(d.ctx, d.patron)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				const short = 500 * time.Millisecond
				abandoned := d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: short})
				next := d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: long})
				<-abandoned
				if err := free(d, d.store.heldBy(d.ctx, d.patron)); err != nil {
					t.Fatal(err)
				}
				<-time.After(lock.PlaceKept - time.Millisecond)
				newcomer := <-d.startAcquire(d.ctx, lock.Request{})
				if newcomer.code != fault.LockHeld || !isWaiting(next) {
					t.Errorf("a newcomer got %+v, the next waits: %t, want neither to overtake", newcomer, isWaiting(next))
				}
				if got := <-next; got.err != nil || got.took != short+lock.PlaceKept {
					t.Errorf("the next got %+v, want the lock after %s", got, short+lock.PlaceKept)
				}
			})
		})
	}
}

func TestService_SeveralAbandonedPlacesDelayTheNextOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		const short = 500 * time.Millisecond
		for range lock.MaxWaiting - 1 {
			d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: short})
		}
		next := d.startAcquire(d.ctx, lock.Request{Wait: long})
		<-time.After(short)
		d.store.free(d.ctx, d.patron)
		if got := <-next; got.err != nil || got.took != short+lock.PlaceKept {
			t.Errorf("the next got %+v, want the lock after %s", got, short+lock.PlaceKept)
		}
	})
}

func TestService_DropsAnAbandonedPlaceWithoutAFurtherCall(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		<-d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: time.Second})
		<-time.After(lock.PlaceKept - time.Millisecond)
		if d.Lines() != 1 {
			t.Errorf("%d lines within the moment, want 1", d.Lines())
		}
		<-time.After(time.Millisecond)
		synctest.Wait()
		if d.Lines() != 0 {
			t.Errorf("%d lines after the moment, want 0", d.Lines())
		}
	})
}

func TestService_KeepsNoPlaceForACallThatEndsOtherwise(t *testing.T) {
	for name, end := range map[string]func(d *harness, leave context.CancelFunc){
		"its caller leaves": func(_ *harness, leave context.CancelFunc) { leave() },
		"it gets the lock":  func(d *harness, _ context.CancelFunc) { d.store.free(d.ctx, d.patron) },
		"the service stops": func(d *harness, _ context.CancelFunc) { d.Stop() },
		"the store fails": func(d *harness, _ context.CancelFunc) {
			d.store.mu.Lock()
			defer d.store.mu.Unlock()
			d.store.fail = errors.New("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				ctx, leave := context.WithCancel(d.ctx)
				defer leave()
				got := d.startAcquire(ctx, lock.Request{AcquisitionID: uuid.New(), Wait: long})
				end(d, leave)
				<-got
				synctest.Wait()
				if d.Lines() != 0 {
					t.Error("its place is kept")
				}
			})
		})
	}
	for name, req := range map[string]lock.Request{
		"it did not wait":      {AcquisitionID: uuid.New()},
		"it names no request":  {Wait: time.Second},
		"it came after a stop": {AcquisitionID: uuid.New(), Wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				if name == "it came after a stop" {
					d.Stop()
				}
				<-d.startAcquire(d.ctx, req)
				synctest.Wait()
				if d.Lines() != 0 {
					t.Error("its place is kept")
				}
			})
		})
	}
}

// The wait and the call have both ended, and the select may see either first.
func TestService_KeepsNoPlaceForACallerThatLeftBeforeItsWaitRanOut(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		for range 20 {
			ctx, leave := context.WithCancel(d.ctx)
			looking, left := make(chan struct{}), make(chan struct{})
			d.store.mu.Lock()
			d.store.beforePeek = func() {
				close(looking)
				<-left
			}
			d.store.mu.Unlock()
			got := d.startAcquire(ctx, lock.Request{UserID: d.newHeldPatron(), AcquisitionID: uuid.New(), Wait: time.Second})
			<-looking
			<-time.After(2 * time.Second) // the wait times out during the peek
			leave()
			close(left)
			<-got
			synctest.Wait()
			if d.Lines() != 0 {
				t.Fatal("its place is kept")
			}
		}
	})
}

func TestService_StopDropsKeptPlacesAtOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		for range 3 {
			d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: time.Second})
			d.startAcquire(d.ctx, lock.Request{UserID: d.newHeldPatron(), AcquisitionID: uuid.New(), Wait: time.Second})
		}
		<-time.After(time.Second)
		synctest.Wait()
		if d.Lines() != 4 {
			t.Errorf("%d lines before the stop, want 4", d.Lines())
		}
		d.Stop()
		if d.Lines() != 0 {
			t.Errorf("%d lines after the stop, want 0", d.Lines())
		}
	})
}

func TestService_CountsKeptPlacesAsWaiting(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		req := lock.Request{AcquisitionID: uuid.New(), Wait: time.Second}
		kept := d.startAcquire(d.ctx, req)
		for range lock.MaxWaiting - 1 {
			d.startAcquire(d.ctx, lock.Request{AcquisitionID: uuid.New(), Wait: time.Second})
		}
		<-kept
		if got := <-d.startAcquire(d.ctx, lock.Request{Wait: long}); got.code != fault.LockQueueFull {
			t.Errorf("a newcomer got %+v, want %q", got, fault.LockQueueFull)
		}
		again := d.startAcquire(d.ctx, req)
		if !isWaiting(again) {
			t.Errorf("the request whose place is kept got %+v, want to wait", <-again)
		}
		<-time.After(lock.PlaceKept)
		synctest.Wait()
		newcomer := d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		if !isWaiting(newcomer) {
			t.Error("after the moment a newcomer does not wait")
		}
		<-again
		<-newcomer
	})
}

func TestService_CopyWaitsOnAfterTheFirstTimesOut(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		before := d.startAcquire(d.ctx, lock.Request{Wait: 100 * time.Millisecond})
		req := lock.Request{AcquisitionID: uuid.New(), Wait: 300 * time.Millisecond}
		first := d.startAcquire(d.ctx, req)
		between := d.startAcquire(d.ctx, lock.Request{Wait: long})
		req.Wait = long
		repeat := d.startAcquire(d.ctx, req)
		<-before
		<-first
		d.store.free(d.ctx, d.patron)
		if got := <-repeat; got.err != nil || got.took > 300*time.Millisecond+pollSlot {
			t.Errorf("the copy got %+v, want the lock on the turn of the first one", got)
		}
		if !isWaiting(between) {
			t.Fatalf("the one between got %+v", <-between)
		}
		d.store.free(d.ctx, d.patron)
		<-between
	})
}
