package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

func TestService_RefusesByAPlainRead(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		users := map[string]uuid.UUID{"granted here": uuid.New(), "granted elsewhere": d.patron}
		<-d.startAcquire(d.ctx, lock.Request{UserID: users["granted here"]})
		<-d.startAcquire(d.ctx, lock.Request{UserID: d.patron}) // refused, so that it is known
		asks := d.store.asks
		for name, user := range users {
			for _, request := range []uuid.UUID{uuid.Nil, uuid.New()} {
				if got := <-d.startAcquire(d.ctx, lock.Request{UserID: user, AcquisitionID: request}); got.code != fault.LockHeld {
					t.Errorf("%s: got %+v, want %q", name, got, fault.LockHeld)
				}
			}
		}
		if d.store.asks != asks {
			t.Errorf("%d acquires for locks known to be held, want none", d.store.asks-asks)
		}
	})
}

// This process knows that the lock was held a moment ago. The store knows better.
func TestService_PlainReadRefusesNoFreeLock(t *testing.T) {
	for name, end := range map[string]func(d *harness, l lock.Lock){
		"released through another process": func(d *harness, l lock.Lock) { d.store.free(d.ctx, l.UserID) },
		"outdated": func(d *harness, l lock.Lock) {
			l.CreatedAt = l.CreatedAt.Add(-2 * ttl)
			d.store.put(d.ctx, l)
		},
		"released here": func(d *harness, l lock.Lock) { _ = d.Release(d.ctx, l.ID) },
		"granted to the same request elsewhere": func(d *harness, l lock.Lock) {
			l.ID = uuid.New()
			d.store.put(d.ctx, l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				req := lock.Request{UserID: uuid.New(), AcquisitionID: uuid.New()}
				first := <-d.startAcquire(d.ctx, req)
				end(d, first.l)
				if got := <-d.startAcquire(d.ctx, req); got.err != nil || got.took != 0 {
					t.Errorf("got %+v, want the lock at once", got)
				}
			})
		})
	}
}

func TestService_PlainReadRefusesNoFirstComerOfAFreeLock(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		<-d.startAcquire(d.ctx, lock.Request{}) // the lock is known to be held
		reading, joined := make(chan struct{}), make(chan struct{})
		d.store.beforePeek = func() {
			close(reading)
			<-joined
			d.store.free(d.ctx, d.patron)
		}
		first := d.startAcquire(d.ctx, lock.Request{})
		<-reading
		second := d.startAcquire(d.ctx, lock.Request{Wait: long})
		close(joined)
		one := <-first
		if one.err != nil {
			t.Errorf("the first comer got %+v, want the lock", one)
		}
		synctest.Wait()
		if !isWaiting(second) {
			t.Fatalf("the second got %+v", <-second)
		}
		if err := d.Release(d.ctx, one.l.ID); err != nil {
			t.Error(err)
		}
		<-second
	})
}

func TestService_PollsByTheAgeOfTheLock(t *testing.T) {
	for name, tt := range map[string]struct {
		age  time.Duration // as it is released through another process
		most time.Duration // that the waiter waits on
	}{
		"just granted":   {age: 2 * time.Millisecond, most: 1500 * time.Microsecond},
		"held for 4 ms":  {age: 4 * time.Millisecond, most: 1500 * time.Microsecond},
		"held for 20 ms": {age: 20 * time.Millisecond, most: 5 * time.Millisecond},
		"held for 80 ms": {age: 80 * time.Millisecond, most: 20 * time.Millisecond},
		"held for 2 s":   {age: 2 * time.Second, most: 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				waiter := d.startAcquire(d.ctx, lock.Request{Wait: long})
				<-time.After(tt.age)
				d.store.free(d.ctx, d.patron)
				got := <-waiter
				if got.err != nil || got.took > tt.age+tt.most {
					t.Errorf("got %+v, want the lock after %s more at most", got, tt.most)
				}
			})
		})
	}
}

// A clock that was set back left the date of the lock.
func TestService_PollsALockOfTheFutureRarely(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		d.store.put(d.ctx, lock.Lock{ID: uuid.New(), UserID: d.patron, CreatedAt: time.Now().Add(4 * time.Second), TTL: ttl})
		<-d.startAcquire(d.ctx, lock.Request{Wait: time.Second})
		if d.store.peeks > 26 {
			t.Errorf("%d reads in a second, want 26 at most", d.store.peeks)
		}
	})
}
