package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// withdrawTimeout bounds the withdrawal of a lock whose caller has left.
const withdrawTimeout = time.Second

// Service grants locks, with a line of waiters per patron. It is safe for concurrent use.
type Service struct {
	store Store
	obs   Observer
	log   *slog.Logger
	queue *queue
}

// NewService returns a Service on store.
func NewService(store Store, obs Observer, log *slog.Logger) *Service {
	return &Service{store: store, obs: obs, log: log, queue: newQueue(log)}
}

// Stop answers all waiters that the lock is held. Later acquires do not wait.
func (s *Service) Stop() { s.queue.stop() }

// Get returns a lock, outdated or not. Fault: NotFound.
func (s *Service) Get(ctx context.Context, id uuid.UUID) (Lock, error) { return s.store.Get(ctx, id) }

// List returns a page of locks, oldest first, and how many match in all.
func (s *Service) List(ctx context.Context, f Filter) ([]Lock, int, error) {
	return s.store.List(ctx, f)
}

// Release releases a lock, and hands it over to the first waiter or wakes that. It deletes
// an outdated lock too, but returns NotFound, so that the holder learns of it. Fault:
// NotFound.
func (s *Service) Release(ctx context.Context, id uuid.UUID) error {
	if handedOver, err := s.handOver(ctx, id); handedOver || err != nil {
		return err
	}
	return s.releaseLock(ctx, id, s.store.Release)
}

// ReleaseDurably is Release that a crash of the store cannot undo. After NotFound too, no
// commit with this lock succeeds.
func (s *Service) ReleaseDurably(ctx context.Context, id uuid.UUID) error {
	return s.releaseLock(ctx, id, s.store.ReleaseDurably)
}

func (s *Service) releaseLock(ctx context.Context, id uuid.UUID, release func(context.Context, uuid.UUID) (Lock, error)) error {
	l, err := release(ctx, id)
	if err != nil {
		return err
	}
	s.wakeNext(ctx, l)
	if l.Outdated {
		return fault.New(fault.NotFound, "Lock not found: it was outdated")
	}
	s.obs.Released()
	return nil
}

// NoteRelease wakes the first waiter for a patron whose lock a commit released.
func (s *Service) NoteRelease(ctx context.Context, userID uuid.UUID) {
	s.wakeNext(ctx, Lock{UserID: userID})
	s.obs.Released()
}

// ForceRelease releases a lock, outdated or not, stores the note, wakes the first waiter
// and returns the lock as it was. That is safe at any time, because the holder's commit
// is refused. Faults: NotFound; Invalid for a note without a valid reason.
func (s *Service) ForceRelease(ctx context.Context, id uuid.UUID, n Note) (Lock, error) {
	if err := n.CheckWithReason(); err != nil {
		return Lock{}, err
	}
	l, err := s.store.ForceRelease(ctx, id, n)
	if err != nil {
		return Lock{}, err
	}
	s.log.InfoContext(ctx, "lock released by force", "lock_id", l.ID, "lock_okapi_request_id", l.OkapiRequestID, "outdated", l.Outdated)
	s.wakeNext(ctx, l)
	return l, nil
}

// ReleaseRequest releases the patron's lock if the request has it, outdated or not, and
// wakes the first waiter. It ends the calls of the request in this process with LockHeld.
// It is no error if there is nothing to release.
func (s *Service) ReleaseRequest(ctx context.Context, userID, requestID uuid.UUID) error {
	p, err := patronOf(ctx, userID)
	if err != nil {
		return err
	}
	// First the calls: one that gets the lock after the deletion withdraws it.
	s.queue.releaseRequest(p, requestID)
	l, err := s.store.ReleaseRequest(ctx, userID, requestID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	s.queue.noteFree(p)
	if !l.Outdated {
		s.obs.Released()
	}
	return nil
}

// wakeNext wakes the first that waits for the patron of l.
func (s *Service) wakeNext(ctx context.Context, l Lock) {
	if p, err := patronOf(ctx, l.UserID); err == nil {
		s.queue.noteFree(p)
	}
}

// Acquire takes the patron's lock and waits for at most req.Wait. It serves callers in the
// order of their arrival, also against later callers that do not wait. Only a repeat of
// the request that has the lock goes first. A caller whose ctx ends gets nothing, and
// Acquire withdraws a lock that it was granted meanwhile.
//
// A request whose wait times out keeps its place for placeKept. Its next call continues
// the place; with a wait of 0 for one last try. Later callers do not overtake a kept
// place.
//
// Faults: LockHeld, LockQueueFull.
func (s *Service) Acquire(ctx context.Context, req Request) (Lock, error) {
	start := time.Now()
	l, outcome, err := s.acquire(ctx, req)
	s.obs.Acquired(outcomeOf(outcome, err), time.Since(start))
	return l, err
}

func outcomeOf(o Outcome, err error) Outcome {
	switch {
	case err == nil:
		return o
	case fault.Is(err, fault.LockHeld):
		return Held
	case fault.Is(err, fault.LockQueueFull):
		return QueueFull
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Failed
}

func (s *Service) acquire(ctx context.Context, req Request) (Lock, Outcome, error) {
	p, err := patronOf(ctx, req.UserID)
	if err != nil {
		return Lock{}, "", err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	w := newWaiter(req, end)
	s.queue.enterCall(p, w)
	defer s.queue.leaveCall(p, w)
	l, outcome, err := s.tryOnce(ctx, p, w)
	if fault.Is(err, fault.LockHeld) && req.Wait > 0 {
		if err = s.queue.joinLine(p, w); err == nil {
			l, outcome, err = s.waitForLock(ctx, p, w)
		}
	}
	handed := s.queue.leaveLine(p, w, l.ID)
	switch {
	case handed == nil || handed.ID == l.ID:
	case err == nil: // w took another lock before
		s.withdraw(ctx, *handed)
	default:
		l, outcome, err = s.keepGrant(ctx, w, *handed, Granted)
	}
	if w.released.Load() {
		return Lock{}, "", ErrHeld()
	}
	return l, outcome, err
}

// withdraw deletes a lock whose caller has left, so that it blocks no other caller for the
// rest of its TTL.
func (s *Service) withdraw(ctx context.Context, l Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	if err := s.store.Withdraw(ctx, l); err != nil {
		s.log.WarnContext(ctx, "lock of a caller that left stays until it is outdated", "lock_id", l.ID, "ttl", l.TTL, "err", err)
		return
	}
	s.wakeNext(ctx, l)
}

// ErrHeld is the fault of a refused caller (FOLIO's text).
func ErrHeld() error {
	return &fault.Error{Code: fault.LockHeld, Msg: "Unable to acquire lock", RetryAfter: retryAfter}
}

func patronOf(ctx context.Context, user uuid.UUID) (patron, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return patron{}, fault.Wrap(err, fault.Malformed, "Unable to process request Tenant must be set")
	}
	return patron{tenant: id, user: user}, nil
}
