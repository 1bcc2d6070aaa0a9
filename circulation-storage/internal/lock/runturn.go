package lock

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/span"
)

// RunTurn runs commit as req's turn in the patron's line, and waits for the callers before it for at
// most req.Wait. commit takes the lock itself, and has released it when it returns. Meanwhile later
// callers of this process wait. commit returns how long it waited for a commit of another process, and
// RunTurn how long that and the wait for the turn took.
//
// If the turn does not come in time, or commit finds the lock held, the request keeps its place for
// its next call, which may be of Acquire. req.TTL does not count.
//
// Faults: LockHeld, LockQueueFull; those of commit.
func (s *Service) RunTurn(ctx context.Context, req Request, commit func(context.Context) (time.Duration, error)) (time.Duration, error) {
	p, err := patronOf(ctx, req.UserID)
	if err != nil {
		return 0, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	_, endWait := span.Start(ctx, waitSpan)
	defer endWait(&err)
	start := time.Now()
	var waited time.Duration
	c := &caller{req: req, end: end, runsTurn: true}
	c.take = func(ctx context.Context) (Lock, Outcome, error) {
		waited = time.Since(start)
		endWait(new(error)) // a second end changes nothing
		forOthers, err := commit(ctx)
		// The database's clock, which may be set meanwhile, judged that.
		waited += max(0, min(forOthers, time.Since(start)-waited))
		c.hadTurn = !fault.Is(err, fault.LockHeld)
		return Lock{}, Granted, err
	}
	next := s.lines.enter(p, c)
	defer c.leave(uuid.Nil) // after a panic
	_, _, err = s.seekLock(ctx, c, next)
	if fault.Is(err, fault.LockHeld) {
		c.keepPlace(ctx)
	}
	if _, released := c.leave(uuid.Nil); released && errors.Is(err, context.Canceled) {
		err = ErrHeld()
	}
	s.countTurn(c, err, waited, time.Since(start))
	return waited, err
}

// countTurn counts a grant and a release if the commit was judged under the lock, also if it was refused.
func (s *Service) countTurn(c *caller, err error, waited, took time.Duration) {
	if !c.hadTurn || err != nil && fault.Status(fault.CodeOf(err)) >= 500 {
		s.obs.Acquired(outcomeOf(Granted, err), took)
		return
	}
	s.obs.Acquired(Granted, waited)
	s.obs.Released()
}
