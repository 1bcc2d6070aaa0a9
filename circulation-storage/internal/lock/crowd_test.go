package lock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
)

// Many callers acquire, repeat, leave and release at random, while the store is slow. At
// most one has the lock at any time, and at the end no lock, line or call is left.
func TestService_LeavesNothingAfterManyCallers(t *testing.T) {
	for range 10 {
		t.Run("", func(t *testing.T) {
			withHarness(t, func(t *testing.T, d *harness) {
				d.store.latency = func() time.Duration { return upTo(30 * time.Millisecond) }
				var crowd sync.WaitGroup
				var holding sync.Mutex
				for range 40 {
					crowd.Go(func() {
						<-time.After(upTo(time.Second))
						ctx, leave := context.WithCancel(d.ctx)
						defer leave()
						if rand.N(3) == 0 {
							defer time.AfterFunc(upTo(time.Second), leave).Stop()
						}
						d.comeAndGo(ctx, t, &holding)
					})
				}
				<-time.After(upTo(time.Second))
				d.store.free(d.ctx, d.patron)
				crowd.Wait()
				<-time.After(time.Second) // withdrawals and kept places end
				if got := d.store.heldBy(d.ctx, d.patron); got.ID != uuid.Nil {
					t.Errorf("%+v is left", got)
				}
			})
		})
	}
}

// comeAndGo is one caller. It releases its lock by the lock's id or by its request.
func (d *harness) comeAndGo(ctx context.Context, t *testing.T, holding *sync.Mutex) {
	var copies sync.WaitGroup
	defer copies.Wait()
	req := lock.Request{UserID: d.patron, TTL: ttl, AcquisitionID: uuid.New()}
	for _, wait := range []time.Duration{
		upTo(300 * time.Millisecond), upTo(300 * time.Millisecond), upTo(time.Second), 0,
	} {
		req.Wait = wait
		if rand.N(4) == 0 {
			again := req
			copies.Go(func() { _, _ = d.Acquire(ctx, again) })
			<-time.After(time.Nanosecond) // the copy runs: a release ends no call that comes later
		}
		l, err := d.Acquire(ctx, req)
		if err != nil {
			continue
		}
		if !holding.TryLock() {
			t.Error("two callers have the lock at once")
			return
		}
		<-time.After(upTo(50 * time.Millisecond))
		holding.Unlock()
		if rand.N(2) == 0 {
			_ = d.Release(d.ctx, l.ID)
		}
		break
	}
	if err := d.ReleaseAcquisition(d.ctx, req.UserID, req.AcquisitionID); err != nil {
		t.Error(err)
	}
}

func upTo(most time.Duration) time.Duration { return rand.N(most) + time.Nanosecond }
