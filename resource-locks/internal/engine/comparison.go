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
// missed. It withdraws claims without a ticket: an Enqueue reached the store after its
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
	missed, unknown := c.matchTickets(states, r.number)
	c.wake(missed)
	for _, s := range unknown {
		next, err := c.store.Withdraw(ctx, r.instance, s.Namespace, s.ID)
		if err != nil {
			return err
		}
		c.wake(next)
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
// waits, and the claims without a ticket. A ticket that goes meanwhile has a call of its own
// that ends its claim.
func (c *Claims) matchTickets(states []ClaimState, round int) (missed []uuid.UUID, unknown []ClaimState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range states {
		t := c.tickets[s.ID]
		if t == nil {
			if !c.removed[s.ID] {
				unknown = append(unknown, s)
			}
			continue
		}
		t.seenIn = round
		if s.Held && !t.isHeld {
			missed = append(missed, s.ID)
		}
	}
	return missed, unknown
}

// loseUnseen marks the tickets as lost that a whole comparison must have found and has not,
// unless their end is under way.
func (c *Claims) loseUnseen(r *comparison) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tickets {
		stored := t.instance == r.instance && !t.storedAt.IsZero() && t.storedAt.Before(r.begun)
		if stored && t.ending == notEnding && t.seenIn != r.number {
			c.markLost(t)
		}
	}
}
