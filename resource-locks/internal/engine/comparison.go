package engine

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// pageSize is how many claims are compared at once. One call for thousands of claims would
// delay all others, each time.
const pageSize = 500

// comparison is a comparison of all claims of this process with those in the store, page by
// page in the order of their ids.
type comparison struct {
	begun    time.Time
	after    uuid.UUID // the last claim of the page before
	complete bool
}

// begin begins a new comparison if the last one is complete and leaseInterval old.
func (r *comparison) begin() bool {
	if !r.complete || time.Since(r.begun) < leaseInterval {
		return false
	}
	*r = comparison{begun: time.Now()}
	return true
}

// comparePage compares the tickets of a page with the store. It wakes those whose grant was
// missed, and marks those as lost whose claim is gone. It withdraws claims without a
// ticket: an Enqueue reached the store after its caller had given up. An error ends the
// comparison.
func (c *Claims) comparePage(ctx context.Context, r *comparison) error {
	after := r.after
	r.complete = true
	instance, began := c.lease(), time.Now()
	c.setRemoved(map[uuid.UUID]bool{})
	defer c.setRemoved(nil)
	states, err := c.ClaimsOf(ctx, instance, after, pageSize)
	if err != nil {
		return err
	}
	last := uuid.Max
	if len(states) == pageSize {
		last = states[pageSize-1].ID
	}
	c.loseMissing(states, func(t *Ticket) bool {
		return t.instance == instance && compareIDs(t.id, after) > 0 && compareIDs(t.id, last) <= 0 &&
			!t.storedAt.IsZero() && t.storedAt.Before(began)
	})
	for _, s := range c.selectUnknown(states) {
		next, err := c.Withdraw(ctx, instance, s.Namespace, s.ID)
		if err != nil {
			return err
		}
		c.wake(next)
	}
	var granted []uuid.UUID
	for _, s := range states {
		if s.Held {
			granted = append(granted, s.ID)
		}
	}
	c.wake(granted)
	r.after, r.complete = last, last == uuid.Max
	return nil
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// setRemoved sets the map of the tickets that are removed from now on.
func (c *Claims) setRemoved(removed map[uuid.UUID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = removed
}

// loseMissing marks the tickets as lost that must be among the states and are not, unless
// their end is under way. The states are in the order of their ids.
func (c *Claims) loseMissing(states []ClaimState, mustBe func(*Ticket) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, t := range c.tickets {
		if t.ending != notEnding || !mustBe(t) {
			continue
		}
		_, found := slices.BinarySearchFunc(states, id, func(s ClaimState, id uuid.UUID) int { return compareIDs(s.ID, id) })
		if !found {
			c.markLost(t)
		}
	}
}

// selectUnknown returns the claims without a ticket. A ticket that goes meanwhile has a call
// of its own that ends its claim.
func (c *Claims) selectUnknown(states []ClaimState) []ClaimState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unknown []ClaimState
	for _, s := range states {
		if c.tickets[s.ID] == nil && !c.removed[s.ID] {
			unknown = append(unknown, s)
		}
	}
	return unknown
}
