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

type owner struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

// fakeStore holds locks that never get outdated, and counts its calls.
type fakeStore struct {
	lock.Store
	mu             sync.Mutex
	held           map[owner]lock.Lock
	peeks, asks    int
	fail           error  // of Peek
	beforeAnswer   func() // called once, between the next grant and its answer
	afterRefusal   func() // called after each refusal
	beforeLook     func() // called once, as the next Peek begins
	withdrawFailed bool
	releaseFailed  error                // of ReleaseRequest
	latency        func() time.Duration // of Acquire, before and after its decision
	notes          []lock.Note          // of forced releases
}

func ownerOf(ctx context.Context, user uuid.UUID) owner {
	id, _ := okapi.TenantFrom(ctx)
	return owner{id, user}
}

func (f *fakeStore) Acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	f.takeTime()
	l, outcome, err := f.acquire(ctx, req)
	f.takeTime()
	f.mu.Lock()
	next := f.afterRefusal
	if err == nil {
		next, f.beforeAnswer = f.beforeAnswer, nil
	}
	f.mu.Unlock()
	if next != nil {
		next()
	}
	return l, outcome, err
}

func (f *fakeStore) takeTime() {
	if f.latency != nil {
		<-time.After(f.latency())
	}
}

func (f *fakeStore) acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	o := ownerOf(ctx, req.UserID)
	l, held := f.held[o]
	outcome := lock.Granted
	switch {
	case !held:
		l = lock.Lock{ID: uuid.New(), UserID: req.UserID, RequestID: req.RequestID, Holder: req.Holder}
	case req.RequestID != uuid.Nil && l.RequestID == req.RequestID:
		outcome = lock.Renewed
	default:
		return lock.Lock{}, "", lock.ErrHeld()
	}
	l.CreatedAt = time.Now()
	f.held[o] = l
	return l, outcome, nil
}

func (f *fakeStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	f.mu.Lock()
	first := f.beforeLook
	f.beforeLook = nil
	f.mu.Unlock()
	if first != nil {
		first()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peeks++
	l, held := f.held[ownerOf(ctx, req.UserID)]
	return lock.Peek{Free: !held, RequestID: l.RequestID}, f.fail
}

func (f *fakeStore) Release(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o, l := range f.held {
		if l.ID == id && o == ownerOf(ctx, l.UserID) {
			delete(f.held, o)
			return l, nil
		}
	}
	return lock.Lock{}, fault.New(fault.NotFound, "Lock not found")
}

// ReleaseDurably is Release: the fake loses nothing in a crash.
func (f *fakeStore) ReleaseDurably(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	return f.Release(ctx, id)
}

func (f *fakeStore) ReleaseRequest(ctx context.Context, userID, requestID uuid.UUID) (lock.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.releaseFailed != nil {
		return lock.Lock{}, f.releaseFailed
	}
	o := ownerOf(ctx, userID)
	l, held := f.held[o]
	if !held || requestID == uuid.Nil || l.RequestID != requestID {
		return lock.Lock{}, fault.New(fault.NotFound, "Lock not found")
	}
	delete(f.held, o)
	return l, nil
}

func (f *fakeStore) ForceRelease(ctx context.Context, id uuid.UUID, n lock.Note) (lock.Lock, error) {
	l, err := f.Release(ctx, id)
	if err == nil {
		f.notes = append(f.notes, n)
	}
	return l, err
}

func (f *fakeStore) Withdraw(ctx context.Context, l lock.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.withdrawFailed {
		return context.DeadlineExceeded
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := ownerOf(ctx, l.UserID); f.held[o] == l {
		delete(f.held, o)
	}
	return nil
}

// hold gives the lock to another process.
func (f *fakeStore) hold(ctx context.Context, req lock.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[ownerOf(ctx, req.UserID)] = lock.Lock{ID: uuid.New(), UserID: req.UserID, RequestID: req.RequestID}
}

// put stores the lock as it is.
func (f *fakeStore) put(ctx context.Context, l lock.Lock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[ownerOf(ctx, l.UserID)] = l
}

// heldBy is the patron's lock.
func (f *fakeStore) heldBy(ctx context.Context, user uuid.UUID) lock.Lock {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[ownerOf(ctx, user)]
}

// free takes the lock away as another process does: nobody here is told.
func (f *fakeStore) free(ctx context.Context, user uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, ownerOf(ctx, user))
}

// counts is what the observer was told.
type counts struct {
	mu               sync.Mutex
	outcomes         map[lock.Outcome]int
	waiting, mostly  int
	released, sweeps int
	swept            int
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

func (c *counts) Swept(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeps, c.swept = c.sweeps+1, c.swept+n
}

// desk is a service whose one patron has a held lock, and a fake clock.
type desk struct {
	*lock.Service
	store  *fakeStore
	counts *counts
	ctx    context.Context //nolint:containedctx // the tenant's, for every call of the test
	patron uuid.UUID
}

// atDesk runs a test on a fake clock. Afterwards no caller may wait, and once the
// kept places are dropped no line may be left.
func atDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{
			store:  &fakeStore{held: map[owner]lock.Lock{}},
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
		<-time.After(lock.PlaceKept) // no call comes for the places that are kept
		synctest.Wait()
		if d.Lines() != 0 {
			t.Errorf("%d lines are left", d.Lines())
		}
	})
}

func mustTenant(t *testing.T, name string) okapi.Tenant {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// answer is what a caller got, and how long after it asked.
type answer struct {
	l    lock.Lock
	code fault.Code
	err  error
	took time.Duration
}

// ask acquires in a goroutine of its own and returns once the caller waits or has
// its answer.
func (d *desk) ask(ctx context.Context, req lock.Request) <-chan answer {
	if req.UserID == uuid.Nil {
		req.UserID = d.patron
	}
	got := make(chan answer, 1)
	start := time.Now()
	go func() {
		l, err := d.Acquire(ctx, req)
		got <- answer{l, fault.CodeOf(err), err, time.Since(start)}
	}()
	synctest.Wait()
	return got
}

// elsewhere is a new patron whose lock another process holds.
func (d *desk) elsewhere() uuid.UUID {
	user := uuid.New()
	d.store.hold(d.ctx, lock.Request{UserID: user})
	return user
}

// waits reports whether a caller has no answer yet.
func waits(got <-chan answer) bool { return len(got) == 0 }
