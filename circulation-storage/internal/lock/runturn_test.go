package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

// turn is a commit under way.
type turn struct {
	running chan struct{} // closed as it has its turn
	finish  chan error    // takes what it returns
	got     chan answer
}

// startTurn runs a commit for the patron in a goroutine of its own. It returns once the commit runs,
// waits or has its answer.
func (d *harness) startTurn(ctx context.Context, acquisition uuid.UUID, wait time.Duration) turn {
	u := turn{running: make(chan struct{}), finish: make(chan error, 1), got: make(chan answer, 1)}
	start := time.Now()
	go func() {
		req := lock.Request{UserID: d.patron, AcquisitionID: acquisition, Wait: wait}
		_, err := d.RunTurn(ctx, req, func(ctx context.Context) (time.Duration, error) {
			close(u.running)
			select {
			case err := <-u.finish:
				return 0, err
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		u.got <- answer{code: fault.CodeOf(err), err: err, took: time.Since(start)}
	}()
	synctest.Wait()
	return u
}

// end ends the commit with err, and returns the answer of its call.
func (u turn) end(err error) answer {
	u.finish <- err
	a := <-u.got
	synctest.Wait()
	return a
}

// runs reports whether the commit has its turn.
func (u turn) runs() bool {
	select {
	case <-u.running:
		return true
	default:
		return false
	}
}

func TestRunTurn_CallersFollowInOrder(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		d.store.free(d.ctx, d.patron)
		first := d.startTurn(d.ctx, uuid.New(), time.Second)
		second := d.startTurn(d.ctx, uuid.New(), time.Second)
		third := d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		if a := <-d.startAcquire(d.ctx, lock.Request{}); a.code != fault.LockHeld {
			t.Errorf("a newcomer that does not wait got %+v, want it refused", a)
		}
		fourth := d.startTurn(d.ctx, uuid.New(), time.Second)
		if !first.runs() || second.runs() || fourth.runs() || !isWaiting(third) || d.store.asks != 0 {
			t.Fatal("want the first commit alone")
		}
		if a := first.end(nil); a.err != nil || !second.runs() || fourth.runs() || !isWaiting(third) {
			t.Fatalf("after the first (%v): want the second commit alone", a.err)
		}
		if a := second.end(fault.New(fault.LimitReached, "the limit")); a.code != fault.LimitReached || fourth.runs() {
			t.Fatalf("got %v, want the refusal and no overtaking", a.err)
		}
		granted := <-third
		if granted.err != nil || granted.took != 0 {
			t.Fatalf("the waiting acquire got %+v, want the lock at once", granted)
		}
		d.store.free(d.ctx, d.patron) // as another process releases it
		<-time.After(lock.LongestPoll)
		synctest.Wait()
		if !fourth.runs() {
			t.Fatal("the last commit did not run")
		}
		fourth.end(nil)
		if d.counts.outcomes[lock.Granted] != 4 || d.counts.outcomes[lock.Held] != 1 || d.counts.released != 3 {
			t.Errorf("counted %v and %d releases, want the turns as grants and releases", d.counts.outcomes, d.counts.released)
		}
	})
}

func TestRunTurn_HeldLockKeepsThePlace(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		id := uuid.New()
		held := d.startTurn(d.ctx, id, time.Second)
		if a := held.end(lock.ErrHeld()); a.code != fault.LockHeld || a.took != 0 {
			t.Fatalf("got %+v, want LockHeld at once", a)
		}
		newcomer := d.startTurn(d.ctx, uuid.New(), 200*time.Millisecond)
		own := d.startAcquire(d.ctx, lock.Request{AcquisitionID: id, Wait: time.Second})
		if newcomer.runs() || !isWaiting(own) {
			t.Fatal("want both to wait")
		}
		d.store.free(d.ctx, d.patron)
		if a := <-own; a.err != nil {
			t.Errorf("got %v, want the lock", a.err)
		}
		<-newcomer.running
		if l := d.store.heldBy(d.ctx, d.patron); l.AcquisitionID != id {
			t.Errorf("the newcomer's commit runs before %s has the lock", id)
		}
		if a := newcomer.end(lock.ErrHeld()); a.code != fault.LockHeld {
			t.Errorf("the newcomer got %+v, want LockHeld", a)
		}
	})
}

func TestRunTurn_WaitIsBounded(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		first := d.startTurn(d.ctx, uuid.New(), time.Second)
		second := d.startTurn(d.ctx, uuid.New(), 200*time.Millisecond)
		if a := <-second.got; a.code != fault.LockHeld || a.took != 200*time.Millisecond || second.runs() {
			t.Errorf("got %+v, want LockHeld after 200 ms", a)
		}
		first.end(nil)
	})
}

func TestRunTurn_AddsTheWaitsUp(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		first := d.startTurn(d.ctx, uuid.New(), time.Second)
		got := make(chan time.Duration, 1)
		go func() {
			commit := func(context.Context) (time.Duration, error) {
				<-time.After(40 * time.Millisecond)
				return 30 * time.Millisecond, nil
			}
			waited, _ := d.RunTurn(d.ctx, lock.Request{UserID: d.patron, Wait: time.Second}, commit)
			got <- waited
		}()
		<-time.After(20 * time.Millisecond)
		first.end(nil)
		if waited := <-got; waited != 50*time.Millisecond {
			t.Errorf("got a wait of %s, want 20 ms for the turn and 30 ms of the commit", waited)
		}
	})
}

// The database's clock judges how long a commit waited, and may be set meanwhile.
func TestRunTurn_WaitIsNoLongerThanTheCommit(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		for judged, want := range map[time.Duration]time.Duration{-time.Hour: 0, time.Hour: 30 * time.Millisecond} {
			waited, err := d.RunTurn(d.ctx, lock.Request{UserID: d.patron}, func(context.Context) (time.Duration, error) {
				<-time.After(30 * time.Millisecond)
				return judged, nil
			})
			if err != nil || waited != want {
				t.Errorf("got a wait of %s, %v for %s, want %s", waited, err, judged, want)
			}
		}
	})
}

func TestRunTurn_IsNotHandedALock(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		d.store.free(d.ctx, d.patron)
		l := <-d.startAcquire(d.ctx, lock.Request{})
		before := d.startAcquire(d.ctx, lock.Request{Wait: time.Second}) // makes the line await the lock
		next := d.startTurn(d.ctx, uuid.New(), time.Second)
		if err := d.Release(d.ctx, l.l.ID); err != nil {
			t.Fatal(err)
		}
		handed := <-before
		if handed.err != nil || d.store.handOvers != 1 || next.runs() {
			t.Fatalf("got %+v after %d hand-overs, want the lock for the first in line", handed, d.store.handOvers)
		}
		if err := d.Release(d.ctx, handed.l.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d.store.handOvers != 1 || !next.runs() {
			t.Errorf("%d hand-overs, want the lock released and the commit running", d.store.handOvers)
		}
		next.end(nil)
	})
}

func TestRunTurn_RepeatSharesTheTurn(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		id := uuid.New()
		first, repeat := d.startTurn(d.ctx, id, time.Second), d.startTurn(d.ctx, id, time.Second)
		if !repeat.runs() {
			t.Error("the repeat waits for its first copy")
		}
		first.end(nil)
		repeat.end(nil)
	})
}

func TestRunTurn_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(d *harness, cancel func(), id uuid.UUID)
		code fault.Code
	}{
		"the caller leaves": {
			end: func(_ *harness, cancel func(), _ uuid.UUID) { cancel() }, code: fault.Internal,
		},
		"the request is released": {
			end: func(d *harness, _ func(), id uuid.UUID) {
				_ = d.ReleaseAcquisition(d.ctx, d.patron, id)
			}, code: fault.LockHeld,
		},
	}
	for name, tt := range tests {
		for _, waits := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " while it waits"}[waits], func(t *testing.T) {
				withHarness(t, func(t *testing.T, d *harness) {
					var before turn
					if waits {
						before = d.startTurn(d.ctx, uuid.New(), time.Second)
					}
					ctx, cancel := context.WithCancel(d.ctx)
					defer cancel()
					id := uuid.New()
					ending := d.startTurn(ctx, id, time.Second)
					next := d.startTurn(d.ctx, uuid.New(), time.Second)
					tt.end(d, cancel, id)
					if a := <-ending.got; a.code != tt.code {
						t.Errorf("got %v, want %s", a.err, tt.code)
					}
					if waits {
						before.end(nil)
					}
					synctest.Wait()
					if !next.runs() {
						t.Error("the next commit does not run")
					}
					next.end(nil)
				})
			})
		}
	}
}

func TestRunTurn_PanicFreesThePlace(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		func() {
			defer func() { _ = recover() }()
			commit := func(context.Context) (time.Duration, error) { panic("broken") }
			_, _ = d.RunTurn(d.ctx, lock.Request{UserID: d.patron}, commit)
		}()
		if next := d.startTurn(d.ctx, uuid.New(), 0); !next.runs() {
			t.Error("the next commit does not run")
		} else {
			next.end(nil)
		}
	})
}

// A line of commits leaves the lock to other processes after a while.
func TestRunTurn_Yields(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		turns := make([]turn, lock.MaxGrants+1)
		for i := range turns {
			turns[i] = d.startTurn(d.ctx, uuid.New(), time.Second)
		}
		for i, u := range turns[:lock.MaxGrants] {
			if !u.runs() {
				t.Fatalf("commit %d does not run", i)
			}
			u.end(nil)
		}
		if last := turns[lock.MaxGrants]; last.runs() {
			t.Error("the line did not yield")
		} else {
			<-time.After(lock.LongestYield)
			synctest.Wait()
			last.end(nil)
		}
	})
}
