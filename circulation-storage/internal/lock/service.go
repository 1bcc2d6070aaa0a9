package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// The head of a line looks this often, evenly spread. A lock freed through
	// another process is noticed after the longest at most.
	shortestLook = 20 * time.Millisecond
	longestLook  = 40 * time.Millisecond

	// withdrawTimeout bounds giving back a lock whose caller has left.
	withdrawTimeout = time.Second
)

// Service hands out locks, with a line of waiters per patron. It is safe for
// concurrent use.
type Service struct {
	store Store
	obs   Observer
	log   *slog.Logger
	queue *queue
}

// NewService returns a Service on store.
func NewService(store Store, obs Observer, log *slog.Logger) *Service {
	return &Service{store: store, obs: obs, log: log, queue: newQueue()}
}

// Stop answers all waiters at once that the lock is held. Acquires that come
// later do not wait either.
func (s *Service) Stop() { s.queue.stop() }

// Get returns a lock, outdated or not. Fault: NotFound.
func (s *Service) Get(ctx context.Context, id uuid.UUID) (Lock, error) { return s.store.Get(ctx, id) }

// List returns a page of locks, oldest first, and how many match in all.
func (s *Service) List(ctx context.Context, f Filter) ([]Lock, int, error) {
	return s.store.List(ctx, f)
}

// Release gives a lock back and lets the first waiter look at once. An outdated
// lock goes too, but its holder learns that it had lost it. Fault: NotFound.
func (s *Service) Release(ctx context.Context, id uuid.UUID) error {
	return s.release(ctx, id, s.store.Release)
}

// ReleaseDurably is Release that a crash of the store cannot undo, NotFound
// included: no later commit with this lock succeeds.
func (s *Service) ReleaseDurably(ctx context.Context, id uuid.UUID) error {
	return s.release(ctx, id, s.store.ReleaseDurably)
}

func (s *Service) release(ctx context.Context, id uuid.UUID, release func(context.Context, uuid.UUID) (Lock, error)) error {
	l, err := release(ctx, id)
	if err != nil {
		return err
	}
	s.freed(ctx, l)
	if l.Outdated {
		return fault.New(fault.NotFound, "Lock not found: it was outdated")
	}
	s.obs.Released()
	return nil
}

// ForceRelease takes a lock away from whoever holds it, outdated or not, keeps who
// did it and why, lets the first waiter look at once, and returns the lock as it
// was. That is safe at any time: the holder's commit is refused. Faults: NotFound;
// Invalid for a note without a reason, or with one that cannot be kept.
func (s *Service) ForceRelease(ctx context.Context, id uuid.UUID, n Note) (Lock, error) {
	if err := n.CheckWithReason(); err != nil {
		return Lock{}, err
	}
	l, err := s.store.ForceRelease(ctx, id, n)
	if err != nil {
		return Lock{}, err
	}
	s.log.InfoContext(ctx, "lock released by force", "lock_id", l.ID, "lock_okapi_request_id", l.OkapiRequestID, "outdated", l.Outdated)
	s.freed(ctx, l)
	return l, nil
}

// ReleaseRequest releases the patron's lock if the request has it, outdated or not,
// and lets the first waiter look at once. It ends the calls of the request that run
// in this process: they are answered that the lock is held, and take none. It is no
// error if there is nothing to release.
func (s *Service) ReleaseRequest(ctx context.Context, userID, requestID uuid.UUID) error {
	p, err := patronOf(ctx, userID)
	if err != nil {
		return err
	}
	// First the calls: one that takes the lock after the deletion gives it back.
	s.queue.release(p, requestID)
	l, err := s.store.ReleaseRequest(ctx, userID, requestID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	s.queue.wakeHead(p)
	if !l.Outdated {
		s.obs.Released()
	}
	return nil
}

// freed lets the first who waits for the lock look at once.
func (s *Service) freed(ctx context.Context, l Lock) {
	if p, err := patronOf(ctx, l.UserID); err == nil {
		s.queue.wakeHead(p)
	}
}

// Acquire takes the patron's lock, waiting for at most req.Wait. Callers that
// wait are served in the order in which they came; later ones do not overtake
// them, whether they would wait or not. Only a repeat of the request that has the
// lock waits for nobody. A caller whose ctx ends gets nothing, and a lock that it
// was granted meanwhile is given back.
//
// A request whose wait runs out keeps its place for placeKept. Its next call takes
// the place up again, wherever it is; with a wait of 0 for one last try. Those behind
// do not overtake while the place is kept.
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
	w := newWaiter(req.RequestID, end)
	s.queue.enter(p, w)
	defer s.queue.leave(p, w)
	l, outcome, err := s.try(ctx, p, w, req)
	if fault.Is(err, fault.LockHeld) && req.Wait > 0 {
		if err = s.queue.join(p, w); err == nil {
			l, outcome, err = s.wait(ctx, p, w, req)
		}
	}
	if w.released.Load() {
		return Lock{}, "", ErrHeld()
	}
	return l, outcome, err
}

// try takes the lock if it is w's turn, without waiting. Fault: LockHeld.
func (s *Service) try(ctx context.Context, p patron, w *waiter, req Request) (Lock, Outcome, error) {
	switch {
	case s.queue.first(p, w):
		return s.take(ctx, w, req)
	case req.RequestID != uuid.Nil:
		return s.look(ctx, p, w, req)
	}
	return Lock{}, "", ErrHeld()
}

// wait looks for the lock until w has it, its time is up or the service stops.
func (s *Service) wait(ctx context.Context, p patron, w *waiter, req Request) (Lock, Outcome, error) {
	s.obs.Waiting(1)
	defer s.obs.Waiting(-1)
	timeUp := time.NewTimer(req.Wait)
	defer timeUp.Stop()
	next := time.NewTimer(untilNextLook())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return Lock{}, "", fmt.Errorf("waiting for the lock: %w", ctx.Err())
		case <-timeUp.C:
			s.queue.keep(ctx, p, w)
			return Lock{}, "", ErrHeld()
		case <-s.queue.stopped:
			return Lock{}, "", ErrHeld()
		case <-w.wake:
		case <-next.C:
			if !s.queue.first(p, w) {
				continue // a new head is woken and winds its timer up again
			}
		}
		if l, outcome, err := s.look(ctx, p, w, req); !fault.Is(err, fault.LockHeld) {
			return l, outcome, err
		}
		next.Reset(untilNextLook())
	}
}

func untilNextLook() time.Duration { return shortestLook + randomly(longestLook-shortestLook) }

// randomly is a random time below most, so that instances do not move in step.
func randomly(most time.Duration) time.Duration {
	return rand.N(most) //nolint:gosec // spreads load, guards nothing
}

// look takes the lock if a plain read says that w's turn has come: the lock is
// free and nobody is before, or w's own request has it. Fault: LockHeld.
func (s *Service) look(ctx context.Context, p patron, w *waiter, req Request) (Lock, Outcome, error) {
	seen, err := s.store.Peek(ctx, req)
	switch {
	case err != nil:
		return Lock{}, "", err
	case !seen.Free && w.repeats(seen.RequestID), seen.Free && s.queue.first(p, w):
		return s.take(ctx, w, req)
	}
	s.queue.wakeOwner(p, seen.RequestID)
	return Lock{}, "", ErrHeld()
}

// take asks the store. A caller that left meanwhile gives back what it got.
//
// A renewed lock stays, because the answer that granted it may have reached its
// holder. It goes too if the request was released, because nothing uses it then.
func (s *Service) take(ctx context.Context, w *waiter, req Request) (Lock, Outcome, error) {
	l, outcome, err := s.store.Acquire(ctx, req)
	if err == nil && ctx.Err() != nil {
		if outcome != Renewed || w.released.Load() {
			s.withdraw(ctx, l)
		}
		return Lock{}, "", fmt.Errorf("acquiring the lock: %w", ctx.Err())
	}
	return l, outcome, err
}

// withdraw gives back a lock whose caller has left, so that it blocks no other
// caller for the rest of its TTL.
func (s *Service) withdraw(ctx context.Context, l Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	if err := s.store.Withdraw(ctx, l); err != nil {
		s.log.WarnContext(ctx, "lock of a caller that left stays until it is outdated", "lock_id", l.ID, "ttl", l.TTL, "err", err)
		return
	}
	s.freed(ctx, l)
}

// ErrHeld is the answer to whoever does not get the lock (FOLIO's text).
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
