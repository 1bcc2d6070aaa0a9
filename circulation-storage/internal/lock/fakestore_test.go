package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// ttl is longer than any test of the service takes, so that no lock is outdated there.
const ttl = time.Hour

type owner struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

// fakeStore keeps locks in memory and counts its calls. It keeps the contract of
// lock.Store as long as none of its hooks is set.
type fakeStore struct {
	mu             sync.Mutex
	held           map[owner]lock.Lock
	peeks, asks    int
	handOvers      int
	fail           error  // of Peek
	beforeAnswer   func() // called once, between the next grant and its answer
	afterRefusal   func() // called after each refusal
	beforeHandOver func() // called as each HandOver begins
	beforePeek     func() // called once, as the next Peek begins
	withdrawFailed bool
	releaseFailed  error                // of ReleaseAcquisition
	handOverFails  error                // of HandOver
	handOverDone   bool                 // although it fails
	latency        func() time.Duration // of Acquire, before and after its decision
	notes          []lock.Note          // of forced releases
}

var _ lock.Store = (*fakeStore)(nil)

func newFakeStore() *fakeStore { return &fakeStore{held: map[owner]lock.Lock{}} }

func TestFakeStore(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	var tenants atomic.Int32
	locktest.RunStore(t, func(t *testing.T) (context.Context, lock.Store, locktest.Ager) {
		id := mustTenant(t, fmt.Sprintf("tenant%d", tenants.Add(1)))
		return okapi.WithTenant(t.Context(), id), store, store
	})
}

func ownerOf(ctx context.Context, user uuid.UUID) owner {
	id, _ := okapi.TenantFrom(ctx)
	return owner{id, user}
}

// isOutdated judges the lock as if its TTL were ttl.
func isOutdated(l lock.Lock, ttl time.Duration) bool {
	age := time.Since(l.CreatedAt)
	return ttl == 0 || age > ttl || age < -5*time.Second
}

// answered is the lock as it is shown now.
func answered(l lock.Lock) lock.Lock {
	l.Age, l.Outdated = time.Since(l.CreatedAt), isOutdated(l, l.TTL)
	return l
}

// Age implements locktest.Ager.
func (f *fakeStore) Age(_ context.Context, t *testing.T, id uuid.UUID, by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o, l := range f.held {
		if l.ID == id {
			l.CreatedAt = l.CreatedAt.Add(-by)
			f.held[o] = l
			return
		}
	}
	t.Errorf("ageing lock %s: not found", id)
}

func (f *fakeStore) Acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	f.delay()
	l, outcome, err := f.acquire(ctx, req)
	f.delay()
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

func (f *fakeStore) delay() {
	if f.latency != nil {
		<-time.After(f.latency())
	}
}

func (f *fakeStore) acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return lock.Lock{}, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	o := ownerOf(ctx, req.UserID)
	before, found := f.held[o]
	l := newLock(req)
	outcome := lock.Granted
	switch {
	case !found:
	case isOutdated(before, min(before.TTL, req.TTL)):
		outcome = lock.TakenOver
	case req.AcquisitionID != uuid.Nil && before.AcquisitionID == req.AcquisitionID:
		l.ID, outcome = before.ID, lock.Renewed
		if l.CreatedAt.Equal(before.CreatedAt) { // a real clock moves on between two statements
			l.CreatedAt = l.CreatedAt.Add(time.Microsecond)
		}
	default:
		return lock.Lock{}, "", lock.ErrHeld()
	}
	f.held[o] = l
	return l, outcome, nil
}

func (f *fakeStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	f.mu.Lock()
	first := f.beforePeek
	f.beforePeek = nil
	f.mu.Unlock()
	if first != nil {
		first()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peeks++
	l, held := f.held[ownerOf(ctx, req.UserID)]
	if !held || isOutdated(l, min(l.TTL, req.TTL)) {
		return lock.Peek{Free: true}, f.fail
	}
	return lock.Peek{LockID: l.ID, AcquisitionID: l.AcquisitionID, Age: time.Since(l.CreatedAt)}, f.fail
}

// find returns the tenant's lock with that id. f.mu must be held.
func (f *fakeStore) find(ctx context.Context, id uuid.UUID) (owner, lock.Lock, error) {
	for o, l := range f.held {
		if l.ID == id && o == ownerOf(ctx, l.UserID) {
			return o, answered(l), nil
		}
	}
	return owner{}, lock.Lock{}, errNotFound()
}

func errNotFound() error { return fault.New(fault.NotFound, "Lock not found") }

func (f *fakeStore) Get(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, l, err := f.find(ctx, id)
	return l, err
}

func (f *fakeStore) List(ctx context.Context, filter lock.Filter) ([]lock.Lock, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var matching []lock.Lock
	for o, l := range f.held {
		l = answered(l)
		if o == ownerOf(ctx, l.UserID) &&
			(filter.UserID == uuid.Nil || filter.UserID == l.UserID) &&
			(filter.Holder == "" || filter.Holder == l.Holder) &&
			(filter.Outdated == nil || *filter.Outdated == l.Outdated) {
			matching = append(matching, l)
		}
	}
	slices.SortFunc(matching, func(a, b lock.Lock) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	total := len(matching)
	first := min(filter.Offset, total)
	return matching[first:min(first+filter.Limit, total)], total, nil
}

func (f *fakeStore) Release(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, l, err := f.find(ctx, id)
	if err == nil {
		delete(f.held, o)
	}
	return l, err
}

func (f *fakeStore) HandOver(ctx context.Context, id uuid.UUID, req lock.Request) (lock.Lock, error) {
	if f.beforeHandOver != nil {
		f.beforeHandOver()
	}
	f.delay()
	l, err := f.handOver(ctx, id, req)
	f.delay()
	f.mu.Lock()
	next := f.beforeAnswer
	f.beforeAnswer = nil
	f.mu.Unlock()
	if next != nil {
		next()
	}
	return l, err
}

func (f *fakeStore) handOver(ctx context.Context, id uuid.UUID, req lock.Request) (lock.Lock, error) {
	if err := ctx.Err(); err != nil {
		return lock.Lock{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o, l, err := f.find(ctx, id)
	if err != nil || l.Outdated || l.UserID != req.UserID {
		return lock.Lock{}, errNotFound()
	}
	if f.handOverFails != nil && !f.handOverDone {
		return lock.Lock{}, f.handOverFails
	}
	f.handOvers++
	f.held[o] = newLock(req)
	return f.held[o], f.handOverFails
}

func newLock(req lock.Request) lock.Lock {
	return lock.Lock{
		ID: uuid.New(), UserID: req.UserID, CreatedAt: time.Now(), TTL: req.TTL,
		AcquisitionID: req.AcquisitionID, Holder: req.Holder, OkapiRequestID: req.OkapiRequestID,
	}
}

// ReleaseDurably is Release: the fake loses nothing in a crash.
func (f *fakeStore) ReleaseDurably(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	return f.Release(ctx, id)
}

func (f *fakeStore) ReleaseAcquisition(ctx context.Context, userID, acquisitionID uuid.UUID) (lock.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.releaseFailed != nil {
		return lock.Lock{}, f.releaseFailed
	}
	o := ownerOf(ctx, userID)
	l, held := f.held[o]
	if !held || acquisitionID == uuid.Nil || l.AcquisitionID != acquisitionID {
		return lock.Lock{}, errNotFound()
	}
	delete(f.held, o)
	return answered(l), nil
}

func (f *fakeStore) ForceRelease(ctx context.Context, id uuid.UUID, n lock.Note) (lock.Lock, error) {
	l, err := f.Release(ctx, id)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.notes = append(f.notes, n)
	}
	return l, err
}

func (f *fakeStore) Withdraw(ctx context.Context, l lock.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.withdrawFailed {
		<-ctx.Done() // no answer
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o := ownerOf(ctx, l.UserID)
	if now := f.held[o]; now.ID == l.ID && now.CreatedAt.Equal(l.CreatedAt) {
		delete(f.held, o)
	}
	return nil
}

func (f *fakeStore) Sweep(ctx context.Context, grace time.Duration, limit int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for o, l := range f.held {
		age := time.Since(l.CreatedAt)
		old := age > l.TTL+grace || age < -5*time.Second-grace
		if old && n < limit && o == ownerOf(ctx, l.UserID) {
			delete(f.held, o)
			n++
		}
	}
	return n, nil
}

// hold gives the lock to another process.
func (f *fakeStore) hold(ctx context.Context, req lock.Request) {
	f.put(ctx, lock.Lock{
		ID: uuid.New(), UserID: req.UserID, CreatedAt: time.Now(), TTL: ttl, AcquisitionID: req.AcquisitionID,
	})
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

// free removes the lock as another process does, without a notification.
func (f *fakeStore) free(ctx context.Context, user uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, ownerOf(ctx, user))
}
