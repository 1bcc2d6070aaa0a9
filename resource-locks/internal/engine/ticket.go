package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// lease returns the instance that has a lease, Nil without one.
func (c *Claims) lease() uuid.UUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance
}

// IsLeased reports whether the lease of the ticket's time is kept. The log has one line for the end.
func (c *Claims) IsLeased(t *Ticket) bool { return t.instance == c.lease() }

// addTicket stores the ticket before the claim is enqueued, so that a grant finds it.
func (c *Claims) addTicket(claim *Claim) (*Ticket, error) {
	t := &Ticket{
		id: claim.ID, namespace: claim.Namespace, owner: claim.Owner, paths: FormatResources(claim.Resources),
		held: make(chan struct{}), lost: make(chan struct{}),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.instance == uuid.Nil {
		return nil, errNoLease
	}
	claim.Instance, t.instance = c.instance, c.instance
	c.tickets[t.id] = t
	return t, nil
}

// noteStored notes that the store has the claim. It reports whether the claim waits.
func (c *Claims) noteStored(t *Ticket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.storedAt = time.Now()
	if !t.isHeld && !t.isLost {
		t.waits = true
		c.waiting++
	}
	return t.waits
}

// markHeld reports whether the ticket is newly held. A lost one never is: its connection
// ends. None is when the lease is over, as after a pause of the process: it will be lost, or a
// comparison finds the grant under the lease that was kept. The caller has locked mu.
func (c *Claims) markHeld(t *Ticket) bool {
	if t.isHeld || t.isLost || !time.Now().Before(c.leaseUntil) {
		return false
	}
	c.stopWaiting(t)
	t.isHeld = true
	close(t.held)
	t.announce()
	return true
}

// markLost ends the ticket for its connection. The caller has locked mu.
func (c *Claims) markLost(t *Ticket) {
	if t.isLost {
		return
	}
	c.stopWaiting(t)
	t.isLost = true
	close(t.lost)
	t.announce()
}

func (t *Ticket) announce() {
	if t.notify != nil {
		go t.notify()
	}
}

// stopWaiting keeps the number of waiting tickets. The caller has locked mu.
func (c *Claims) stopWaiting(t *Ticket) {
	if t.waits {
		t.waits = false
		c.waiting--
	}
}

// setEnding notes how the ticket ends in the store, and whether RunEnds has to send that.
func (c *Claims) setEnding(t *Ticket, e ending, unsent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopWaiting(t)
	t.ending, t.unsent = e, unsent
}

func (c *Claims) removeTicket(t *Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopWaiting(t)
	delete(c.tickets, t.id)
	if c.removed != nil {
		c.removed[t.id] = true
	}
}

func (c *Claims) loseTicket(id uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tickets[id]; t != nil {
		c.markLost(t)
	}
}

// sendEnd ends a ticket in the store and forgets it. After an error, RunEnds repeats it.
func (c *Claims) sendEnd(ctx context.Context, t *Ticket, e ending) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	granted, err := c.storeEnd(ctx, t, e)
	if err != nil {
		c.setEnding(t, e, true)
		return err
	}
	c.removeTicket(t)
	c.wake(granted)
	return nil
}

// storeEnd ends a ticket in the store. A panic is an error, because the claim of a forgotten
// ticket would stay.
func (c *Claims) storeEnd(ctx context.Context, t *Ticket, e ending) (granted []uuid.UUID, err error) {
	defer fault.Recover(&err)
	if e == withdrawn {
		return c.store.Withdraw(ctx, t.instance, t.namespace, t.id)
	}
	return c.store.Disconnect(ctx, t.instance, t.namespace, t.id)
}

// wake marks the tickets of this process among the granted claims as held.
func (c *Claims) wake(granted []uuid.UUID) {
	for _, t := range c.markGranted(granted) {
		c.report(EventGranted, t)
	}
}

// markGranted returns the tickets that are newly held.
func (c *Claims) markGranted(granted []uuid.UUID) (woken []*Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range granted {
		if t := c.tickets[id]; t != nil && c.markHeld(t) {
			woken = append(woken, t)
		}
	}
	return woken
}

// listUnsent returns the tickets whose end did not reach the store before, and their ends.
func (c *Claims) listUnsent() map[*Ticket]ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	unsent := map[*Ticket]ending{}
	for _, t := range c.tickets {
		if t.unsent {
			unsent[t] = t.ending
		}
	}
	return unsent
}

// hasWaiting reports whether a connection of this process waits.
func (c *Claims) hasWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting > 0
}

func (c *Claims) report(kind EventKind, t *Ticket) {
	c.observer.Observe(Event{Kind: kind, Claim: true, Namespace: t.namespace, Name: t.paths, Owner: t.owner, At: time.Now()})
}
