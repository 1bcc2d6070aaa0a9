package lock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// counts is an observer that counts.
type counts struct {
	mu              sync.Mutex
	outcomes        map[lock.Outcome]int
	waiting, mostly int
	released        int
}

func (c *counts) Acquired(o lock.Outcome, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[o]++
}

func (c *counts) Waiting(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += delta
	c.mostly = max(c.mostly, c.waiting)
}

func (c *counts) Released() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released++
}

// harness is a service with a fake store and one patron, whose lock another process holds.
type harness struct {
	*lock.Service
	store  *fakeStore
	counts *counts
	ctx    context.Context //nolint:containedctx // the tenant's, for every call of the test
	patron uuid.UUID
}

// withHarness runs a test on a fake clock. Afterwards no caller may wait, and no line may be
// left after the kept places.
func withHarness(t *testing.T, test func(t *testing.T, d *harness)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &harness{
			store:  newFakeStore(),
			counts: &counts{outcomes: map[lock.Outcome]int{}},
			ctx:    okapi.WithTenant(t.Context(), mustTenant(t, "diku")),
			patron: uuid.New(),
		}
		d.Service = lock.NewService(d.store, d.counts, slog.New(slog.NewTextHandler(t.Output(), nil)))
		d.store.hold(d.ctx, lock.Request{UserID: d.patron})
		test(t, d)
		synctest.Wait()
		if d.Calls() != 0 || d.counts.waiting != 0 {
			t.Errorf("%d requests have a call and %d callers wait at the end", d.Calls(), d.counts.waiting)
		}
		<-time.After(lock.PlaceKept) // no call uses the kept places
		synctest.Wait()
		if d.Lines() != 0 {
			t.Errorf("%d lines are left", d.Lines())
		}
		if d.Awaited() != 0 {
			t.Errorf("%d locks are still awaited", d.Awaited())
		}
	})
}

// openOther returns the desk of another process on the same store.
func (d *harness) openOther(t *testing.T) *harness {
	other := *d
	other.counts = &counts{outcomes: map[lock.Outcome]int{}}
	other.Service = lock.NewService(d.store, other.counts, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return &other
}

func mustTenant(t *testing.T, name string) okapi.Tenant {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// answer is the result of an acquire and the time that it took.
type answer struct {
	l    lock.Lock
	code fault.Code
	err  error
	took time.Duration
}

// startAcquire acquires in a goroutine of its own. It returns once the caller waits or has
// its answer.
func (d *harness) startAcquire(ctx context.Context, req lock.Request) <-chan answer {
	if req.UserID == uuid.Nil {
		req.UserID = d.patron
	}
	req.TTL = ttl
	got := make(chan answer, 1)
	start := time.Now()
	go func() {
		l, err := d.Acquire(ctx, req)
		got <- answer{l, fault.CodeOf(err), err, time.Since(start)}
	}()
	synctest.Wait()
	return got
}

// newHeldPatron returns a new patron whose lock another process holds.
func (d *harness) newHeldPatron() uuid.UUID {
	user := uuid.New()
	d.store.hold(d.ctx, lock.Request{UserID: user})
	return user
}

// isWaiting reports whether a caller has no answer yet.
func isWaiting(got <-chan answer) bool { return len(got) == 0 }
