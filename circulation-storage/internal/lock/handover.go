package lock

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// handOver gives the lock to the first waiter in the statement that releases it, and
// reports whether it did. A waiter that has gone meanwhile makes it release the lock.
func (s *Service) handOver(ctx context.Context, id uuid.UUID) (bool, error) {
	c := s.lines.offer(okapi.FromContext(ctx).Tenant, id)
	if c == nil {
		return false, nil
	}
	l, err := s.store.HandOver(ctx, id, c.req)
	if err != nil {
		c.settle(nil)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.LockHeld) {
			err = nil
		}
		return false, err
	}
	s.obs.Released()
	if !c.settle(&l) {
		s.withdraw(ctx, l)
	}
	return true, nil
}

// offer returns the caller that gets the tenant's lock in a hand-over, or nil if there is none,
// and if other processes come next. The release calls settle for it.
func (ls *lines) offer(tenant okapi.Tenant, lockID uuid.UUID) *caller {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.awaited[lockID]
	if ln == nil || ln.patron.tenant != tenant || ln.turns.mustYield() {
		return nil
	}
	i := slices.IndexFunc(ln.places, func(c *caller) bool { return ln.isTurnOf(c) && !c.kept })
	if i < 0 || ln.places[i].offered || ln.places[i].runsTurn {
		return nil
	}
	ln.places[i].offered = true
	return ln.places[i]
}

// settle gives c the lock that was handed over to it, and reports whether c was there to
// take it. Without a lock, c looks for itself.
func (c *caller) settle(handed *Lock) bool {
	ln := c.line
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	c.offered = false
	if handed == nil || c.kept || !slices.Contains(ln.places, c) {
		c.signal(news{})
		return false
	}
	c.handed = handed
	ln.noteGrant(handed.ID)
	ln.wakeFirst(news{}) // copies of the request find its lock
	return true
}

// noteFree forgets that p's lock was held, and wakes the first in p's line.
func (ls *lines) noteFree(p patron) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.held.remove(p)
	if ln := ls.byPatron[p]; ln != nil {
		ln.wakeFirst(ln.turns.passOn())
	}
}
