package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/span"
)

// withdrawTimeout bounds the withdrawal of a lock whose caller has left.
const withdrawTimeout = time.Second

// retryAfter is the Retry-After of refused callers. Locks live for some hundred
// milliseconds, but the header counts in seconds.
const retryAfter = time.Second

// Service grants locks, with a line of waiters per patron. It is safe for concurrent use.
type Service struct {
	store Store
	obs   Observer
	log   *slog.Logger
	lines *lines
}

// NewService returns a Service on store.
func NewService(store Store, obs Observer, log *slog.Logger) *Service {
	return &Service{store: store, obs: obs, log: log, lines: newLines(log)}
}

// Stop answers all waiters that the lock is held. Later acquires do not wait.
func (s *Service) Stop() { s.lines.stop() }

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
	s.wakeNext(ctx, l.UserID)
	if l.Outdated {
		return fault.New(fault.NotFound, "Lock not found: it was outdated")
	}
	s.obs.Released()
	return nil
}

// NoteRelease wakes the first waiter for a patron whose lock a commit released.
func (s *Service) NoteRelease(ctx context.Context, userID uuid.UUID) {
	s.wakeNext(ctx, userID)
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
	s.wakeNext(ctx, l.UserID)
	return l, nil
}

// ReleaseAcquisition releases the patron's lock if the request has it, outdated or not, and
// wakes the first waiter. It ends the calls of the request in this process with LockHeld.
// It is no error if there is nothing to release.
func (s *Service) ReleaseAcquisition(ctx context.Context, userID, acquisitionID uuid.UUID) error {
	p, err := patronOf(ctx, userID)
	if err != nil {
		return err
	}
	// First the calls: one that gets the lock after the deletion withdraws it.
	s.lines.releaseAcquisition(p, acquisitionID)
	l, found, err := fault.Found(s.store.ReleaseAcquisition(ctx, userID, acquisitionID))
	if !found {
		return err
	}
	s.lines.noteFree(p)
	if !l.Outdated {
		s.obs.Released()
	}
	return nil
}

// wakeNext wakes the first that waits for the patron.
func (s *Service) wakeNext(ctx context.Context, userID uuid.UUID) {
	if p, err := patronOf(ctx, userID); err == nil {
		s.lines.noteFree(p)
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
	ctx, end := span.Start(ctx, waitSpan)
	l, outcome, err := s.acquire(ctx, req)
	end(&err)
	s.obs.Acquired(outcomeOf(outcome, err), time.Since(start))
	return l, err
}

// waitSpan names the wait in traces.
const waitSpan = "wait for the lock"

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
	c := &caller{req: req, end: end, take: func(ctx context.Context) (Lock, Outcome, error) { return s.store.Acquire(ctx, req) }}
	next := s.lines.enter(p, c)
	defer c.leave(uuid.Nil) // after a panic
	l, outcome, err := s.seekLock(ctx, c, next)
	handed, released := c.leave(l.ID)
	switch {
	case handed == nil || handed.ID == l.ID:
	case l.ID == uuid.Nil: // c waited, or its wait has just ended
		l, outcome, err = *handed, Granted, nil
	default: // c took another lock before
		s.withdraw(ctx, *handed)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("acquiring the lock: %w", ctx.Err())
		// The answer that granted a renewed lock may have reached the holder.
		if outcome != Renewed || released {
			s.withdraw(ctx, l)
		}
	}
	switch {
	case released:
		return Lock{}, "", ErrHeld()
	case err != nil:
		return Lock{}, "", err
	}
	return l, outcome, nil
}

// seekLock begins with next, and waits in line if the lock is held. Faults: LockHeld, LockQueueFull.
func (s *Service) seekLock(ctx context.Context, c *caller, next step) (Lock, Outcome, error) {
	l, outcome, err := s.followStep(ctx, c, next)
	waits := c.req.Wait > 0 && (!c.runsTurn || next == waitInLine)
	if waits && fault.Is(err, fault.LockHeld) {
		return s.waitForLock(ctx, c)
	}
	return l, outcome, err
}

// waitForLock waits in line until c has the lock, its time is up or the service stops. It
// returns no lock and no error if c leaves with the lock. Faults: LockHeld, LockQueueFull.
func (s *Service) waitForLock(ctx context.Context, c *caller) (Lock, Outcome, error) {
	if err := c.join(); err != nil {
		return Lock{}, "", err
	}
	s.obs.Waiting(1)
	defer s.obs.Waiting(-1)
	for {
		next, err := c.wait(ctx)
		if err != nil || next == leaveWithLock {
			return Lock{}, "", err
		}
		l, outcome, err := s.followStep(ctx, c, next)
		if !fault.Is(err, fault.LockHeld) || c.runsTurn {
			return l, outcome, err
		}
	}
}

// followStep takes the lock, if that is c's next step. A read comes first if the lock may be
// held, because it costs no row lock and no transaction that writes. Fault: LockHeld.
func (s *Service) followStep(ctx context.Context, c *caller, next step) (Lock, Outcome, error) {
	if next == waitInLine {
		return Lock{}, "", ErrHeld()
	}
	if next == readLock && !c.runsTurn {
		seen, err := s.store.Peek(ctx, c.req)
		if err != nil {
			return Lock{}, "", err
		}
		if !c.saw(seen) {
			return Lock{}, "", ErrHeld()
		}
	}
	l, outcome, err := c.take(ctx)
	if fault.Is(err, fault.LockHeld) {
		c.saw(Peek{})
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
	s.wakeNext(ctx, l.UserID)
}

// ErrHeld is the fault of a refused caller (FOLIO's text).
func ErrHeld() error {
	return &fault.Error{Code: fault.LockHeld, Msg: "Unable to acquire lock", RetryAfter: retryAfter}
}

func patronOf(ctx context.Context, user uuid.UUID) (patron, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return patron{}, err
	}
	return patron{tenant: id, user: user}, nil
}
