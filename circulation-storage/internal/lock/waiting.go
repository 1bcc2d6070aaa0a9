package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// The first in line looks for a release through another process after a quarter of the
// lock's age, in these bounds. So waiting grows by a quarter, or by longestPoll, at most.
const (
	shortestPoll = 1500 * time.Microsecond
	longestPoll  = 40 * time.Millisecond
)

// pollDelay is how long the first in line waits before it reads a lock of that age again.
// A lock of the future, which a clock that was set back left, gets the longest delay.
func pollDelay(age time.Duration) time.Duration {
	if age < 0 {
		return longestPoll
	}
	return min(max(age/4, shortestPoll), longestPoll)
}

// tryOnce takes the lock if it is w's turn, without waiting. If the lock was held a moment
// ago, it reads first, because a read costs no row lock and no transaction that writes.
// Fault: LockHeld.
func (s *Service) tryOnce(ctx context.Context, p patron, w *waiter) (Lock, Outcome, error) {
	first := s.queue.isFirst(p, w)
	switch {
	case first && !s.queue.wasHeld(p):
		return s.acquireFromStore(ctx, p, w)
	case first || w.req.RequestID != uuid.Nil:
		return s.acquireIfFree(ctx, p, w, first)
	}
	return Lock{}, "", ErrHeld()
}

// waitForLock waits until w has the lock, its time is up or the service stops. It returns
// LockHeld too if the lock was handed over to w.
func (s *Service) waitForLock(ctx context.Context, p patron, w *waiter) (Lock, Outcome, error) {
	s.obs.Waiting(1)
	defer s.obs.Waiting(-1)
	timeUp := time.NewTimer(w.req.Wait)
	defer timeUp.Stop()
	next := time.NewTimer(shortestPoll)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return Lock{}, "", fmt.Errorf("waiting for the lock: %w", ctx.Err())
		case <-timeUp.C:
			s.queue.keepPlace(ctx, p, w)
			return Lock{}, "", ErrHeld()
		case <-s.queue.stopped:
			return Lock{}, "", ErrHeld()
		case <-w.wake:
		case <-next.C:
			if !s.queue.isFirst(p, w) {
				continue // removeWaiter wakes a new first waiter, which resets the timer
			}
		}
		n, served, offered := s.queue.readNews(w)
		switch {
		case served:
			return Lock{}, "", ErrHeld()
		case offered:
			continue // settleOffer wakes w
		case n.pause > 0:
			next.Reset(n.pause)
			continue
		}
		if l, outcome, err := s.takeTurn(ctx, p, w, n.take); !fault.Is(err, fault.LockHeld) {
			return l, outcome, err
		}
		next.Reset(pollDelay(w.seenAge))
	}
}

// takeTurn takes the lock if it is free. released says that it is, so that a read is not
// needed.
func (s *Service) takeTurn(ctx context.Context, p patron, w *waiter, released bool) (Lock, Outcome, error) {
	w.seenAge = 0
	if released && s.queue.isFirst(p, w) {
		return s.acquireFromStore(ctx, p, w)
	}
	return s.acquireIfFree(ctx, p, w, false)
}

// acquireIfFree takes the lock if a plain read finds it free and it is w's turn, or if w's
// own request has it. first says that it was w's turn before. Fault: LockHeld.
func (s *Service) acquireIfFree(ctx context.Context, p patron, w *waiter, first bool) (Lock, Outcome, error) {
	seen, err := s.store.Peek(ctx, w.req)
	if err != nil {
		return Lock{}, "", err
	}
	w.seenAge = seen.Age
	switch {
	case !seen.Free && w.repeats(seen.RequestID), seen.Free && (first || s.queue.isFirst(p, w)):
		return s.acquireFromStore(ctx, p, w)
	case !seen.Free:
		s.queue.noteSeen(p, seen)
	}
	return Lock{}, "", ErrHeld()
}

// acquireFromStore takes the lock. It withdraws the lock of a caller that left meanwhile.
func (s *Service) acquireFromStore(ctx context.Context, p patron, w *waiter) (Lock, Outcome, error) {
	l, outcome, err := s.store.Acquire(ctx, w.req)
	if err == nil {
		l, outcome, err = s.keepGrant(ctx, w, l, outcome)
	}
	if err == nil || fault.Is(err, fault.LockHeld) {
		s.queue.noteHeld(p)
	}
	return l, outcome, err
}

// keepGrant returns a granted lock, or withdraws it because its caller left meanwhile.
//
// It does not withdraw a renewed lock, because the answer that granted it may have
// reached the holder, unless the request was released.
func (s *Service) keepGrant(ctx context.Context, w *waiter, l Lock, outcome Outcome) (Lock, Outcome, error) {
	if ctx.Err() == nil {
		return l, outcome, nil
	}
	if outcome != Renewed || w.released.Load() {
		s.withdraw(ctx, l)
	}
	return Lock{}, "", fmt.Errorf("acquiring the lock: %w", ctx.Err())
}

// handOver gives the lock to the first waiter in the statement that releases it, and
// reports whether it did. A waiter that has gone meanwhile makes it release the lock.
func (s *Service) handOver(ctx context.Context, id uuid.UUID) (bool, error) {
	tenant, err := okapi.TenantFrom(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // the release without a waiter reports it
	}
	p, w := s.queue.offerLock(tenant, id)
	if w == nil {
		return false, nil
	}
	l, err := s.store.HandOver(ctx, id, w.req)
	if err != nil {
		s.queue.settleOffer(p, w, nil)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.LockHeld) {
			err = nil
		}
		return false, err
	}
	s.obs.Released()
	if !s.queue.settleOffer(p, w, &l) {
		s.withdraw(ctx, l)
	}
	return true, nil
}
