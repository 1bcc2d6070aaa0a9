package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
)

// Callers of another process wait for the lock too, while this process has a full line.
func TestService_LeavesTurnsToOtherProcesses(t *testing.T) {
	for _, held := range []time.Duration{
		time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond,
	} {
		for name, release := range map[string]func(d *harness, l lock.Lock) error{
			"by id": func(d *harness, l lock.Lock) error { return d.Release(d.ctx, l.ID) },
			"by a commit": func(d *harness, l lock.Lock) error {
				d.store.free(d.ctx, l.UserID)
				d.NoteRelease(d.ctx, l.UserID)
				return nil
			},
		} {
			t.Run(name+" after "+held.String(), func(t *testing.T) {
				withHarness(t, func(t *testing.T, d *harness) {
					checkTurnOfOther(t, d, held, release)
				})
			})
		}
	}
}

func checkTurnOfOther(t *testing.T, d *harness, held time.Duration, release func(*harness, lock.Lock) error) {
	t.Helper()
	other := d.openOther(t)
	user := uuid.New()
	current := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
	var line []<-chan answer
	for range lock.MaxWaiting {
		line = append(line, d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long}))
	}
	elsewhere := other.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
	grants, began := 0, time.Now()
	var got answer
	for got.took == 0 && grants < len(line) {
		<-time.After(held)
		if err := release(d, current.l); err != nil {
			t.Fatal(err)
		}
		select {
		case current = <-line[grants]:
			grants++
		case got = <-elsewhere:
		}
	}
	if grants > lock.MaxGrants || time.Since(began) > lock.LongestRun+2*held+lock.LongestYield {
		t.Errorf("the other process waits for %d grants and %s", grants, time.Since(began))
	}
	if err := errors.Join(got.err, other.Release(d.ctx, got.l.ID)); err != nil {
		t.Error(err)
	}
	for ; grants < len(line); grants++ {
		got := <-line[grants]
		if err := errors.Join(got.err, d.Release(d.ctx, got.l.ID)); err != nil {
			t.Fatal(err)
		}
	}
}

// A turn that no other process uses doubles the next run: 8 hand-overs, a release and an
// acquire, then 11 hand-overs.
func TestService_LeavesFewerTurnsThatAreNotUsed(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		current := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		var line []<-chan answer
		for range lock.MaxWaiting {
			line = append(line, d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long}))
		}
		for _, waiter := range line {
			if err := d.Release(d.ctx, current.l.ID); err != nil {
				t.Fatal(err)
			}
			current = <-waiter
		}
		if d.store.handOvers != lock.MaxWaiting-1 {
			t.Errorf("%d hand-overs, want %d", d.store.handOvers, lock.MaxWaiting-1)
		}
	})
}

// Callers that did not wait got the lock before, while a call of the patron ran all the time.
func TestService_CountsTheTurnFromTheFirstWaiter(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		user := uuid.New()
		current := <-d.startAcquire(d.ctx, lock.Request{UserID: user})
		reading := make(chan struct{})
		d.store.mu.Lock()
		d.store.beforePeek = func() { <-reading }
		d.store.mu.Unlock()
		running := d.startAcquire(d.ctx, lock.Request{UserID: user})
		for range lock.MaxGrants {
			err := d.Release(d.ctx, current.l.ID)
			current = <-d.startAcquire(d.ctx, lock.Request{UserID: user})
			if err = errors.Join(err, current.err); err != nil {
				t.Fatal(err)
			}
		}
		waiter := d.startAcquire(d.ctx, lock.Request{UserID: user, Wait: long})
		if err := d.Release(d.ctx, current.l.ID); err != nil || d.store.handOvers != 1 {
			t.Errorf("%v and %d hand-overs, want 1", err, d.store.handOvers)
		}
		<-waiter
		close(reading)
		<-running
	})
}

// Turns that no other process uses double the runs. The first one that is used ends that.
func TestService_LeavesAllTurnsOnceOneIsUsed(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		other := d.openOther(t)
		waiter := lock.Request{UserID: uuid.New(), Wait: long}
		current := <-d.startAcquire(d.ctx, lock.Request{UserID: waiter.UserID})
		line := []<-chan answer{d.startAcquire(d.ctx, waiter)}
		serveFirst := func() { current, line = <-line[0], line[1:] }
		// countRun returns how many hand-overs come before a release without one.
		countRun := func() int {
			for n := 0; ; n++ {
				line = append(line, d.startAcquire(d.ctx, waiter))
				before := d.store.handOvers
				if err := d.Release(d.ctx, current.l.ID); err != nil {
					t.Fatal(err)
				}
				if d.store.handOvers == before {
					return n
				}
				serveFirst()
			}
		}
		first := countRun()
		serveFirst()
		elsewhere := other.startAcquire(d.ctx, waiter)
		second := countRun()
		got := <-elsewhere
		<-time.After(lock.LongestYield) // the line sees that lock
		if err := errors.Join(got.err, other.Release(d.ctx, got.l.ID)); err != nil {
			t.Fatal(err)
		}
		serveFirst()
		third := countRun()
		// The acquire after a turn is a grant of the run too.
		if want := lock.MaxGrants; first != want || second != 2*want-1 || third != want-1 {
			t.Errorf("runs of %d, %d and %d hand-overs, want %d, %d and %d", first, second, third, want, 2*want-1, want-1)
		}
		for len(line) > 0 {
			serveFirst()
			if err := errors.Join(current.err, d.Release(d.ctx, current.l.ID)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
