package engine

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// pageSize is how many claims are compared at once. One call for thousands of claims would
// delay all others, each time.
const pageSize = 500

// comparison is a comparison of all claims of this process with those in the store, page by
// page in the order of their ids. The next one reuses its memory: with thousands of claims
// a second, garbage collections would delay all calls.
type comparison struct {
	number   int
	begun    time.Time
	instance uuid.UUID
	after    uuid.UUID // the last claim of the page before
	complete bool
	page     []ClaimState
}

// begin begins a new comparison if the last one is complete and leaseInterval old.
func (r *comparison) begin(instance uuid.UUID) bool {
	if !r.complete || time.Since(r.begun) < leaseInterval {
		return false
	}
	*r = comparison{number: r.number + 1, begun: time.Now(), instance: instance, page: r.page}
	return true
}

// comparePage compares the tickets of a page with the store. It wakes those whose grant was
// missed. It leaves claims without a ticket to RunEnds: an Enqueue reached the store after its
// caller had given up. After the last page it marks tickets as lost whose claim is gone. An
// error ends the comparison.
func (c *Claims) comparePage(ctx context.Context, r *comparison) error {
	r.complete = true
	c.setRemoved(map[uuid.UUID]bool{})
	defer c.setRemoved(nil)
	states, err := c.store.ClaimsOf(ctx, r.instance, r.after, r.page)
	if err != nil {
		return err
	}
	if err := c.wakeFound(ctx, c.matchTickets(states, r)); err != nil {
		return err
	}
	if len(states) < pageSize {
		c.loseUnseen(r)
		return nil
	}
	r.after, r.complete = states[pageSize-1].ID, false
	return nil
}

// setRemoved sets the map of the tickets that are removed from now on.
func (c *Claims) setRemoved(removed map[uuid.UUID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = removed
}

// matchTickets notes which tickets the store has. It returns the held claims whose ticket
// waits. A claim without a ticket gets one that is to be withdrawn. A ticket that goes meanwhile
// has a call of its own that ends its claim.
func (c *Claims) matchTickets(states []ClaimState, r *comparison) (missed []uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range states {
		t := c.tickets[s.ID]
		switch {
		case t != nil:
			t.seenIn = r.number
			if s.Held && !t.isHeld {
				missed = append(missed, s.ID)
			}
		case !c.removed[s.ID]:
			c.tickets[s.ID] = &Ticket{
				id: s.ID, instance: r.instance, namespace: s.Namespace, isHeld: true, isLost: true, ending: withdrawn, unsent: true,
			}
		}
	}
	return missed
}

// loseUnseen marks the tickets as lost that a whole comparison must have found and has not.
func (c *Claims) loseUnseen(r *comparison) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tickets {
		stored := t.instance == r.instance && !t.storedAt.IsZero() && t.storedAt.Before(r.begun)
		if stored && t.seenIn != r.number {
			c.markLost(t)
		}
	}
}
