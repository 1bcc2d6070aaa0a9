package engine

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

const (
	// pollInterval is how long a grant by another instance, or after an end, may stay
	// unnoticed.
	pollInterval = 25 * time.Millisecond
	// leaseLength is how long the claims of a process that died or froze stay before
	// their Abandon begins.
	leaseLength = 3 * time.Second
	// leaseInterval is how often the lease is kept and all claims are compared.
	leaseInterval = leaseLength / 3
	// callTimeout bounds one call of the loop.
	callTimeout = 2 * time.Second
)

// Run implements web.Worker. It ends the lease when ctx is done, after the connections
// have ended.
func (c *Claims) Run(ctx context.Context) {
	defer c.endLease(context.WithoutCancel(ctx))
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var kept time.Time // when the last round of leaseInterval began
	for {
		if time.Since(kept) >= leaseInterval {
			kept = time.Now()
			c.tryCall(ctx, "keeping the lease", c.keepLease)
			c.tryCall(ctx, "comparing claims", c.compareClaims)
			c.tryCall(ctx, "ending claims", c.sendEnds)
			c.tryCall(ctx, "settling claims", c.settle)
		} else if c.hasWaiting() {
			c.tryCall(ctx, "settling claims", c.settle)
			c.tryCall(ctx, "reading new grants", c.readGrants)
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// tryCall runs f with a time-out and logs its error. The next round tries again.
func (c *Claims) tryCall(ctx context.Context, op string, f func(context.Context) error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := f(call); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, op+" failed", "err", err)
	}
}

// keepLease extends the lease, or begins one. After a lost lease, all tickets are lost.
func (c *Claims) keepLease(ctx context.Context) error {
	instance := c.lease()
	if instance != uuid.Nil {
		err := c.KeepLease(ctx, instance, leaseLength)
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		c.log.ErrorContext(ctx, "the lease was lost, so all connections with claims end")
		c.setInstance(uuid.Nil)
	}
	instance = uuid.New()
	if err := c.StartLease(ctx, instance, leaseLength); err != nil {
		return err
	}
	c.setInstance(instance)
	return nil
}

// setInstance changes the instance and marks the tickets of the former one as lost.
func (c *Claims) setInstance(id uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instance = id
	for _, t := range c.tickets {
		if t.instance != id {
			t.markLost()
		}
	}
}

// compareClaims wakes tickets whose grant was missed, and marks those as lost whose claim
// is gone.
func (c *Claims) compareClaims(ctx context.Context) error {
	instance := c.lease()
	tickets := c.queuedTickets(instance) // before the read, so that it has their claims
	if len(tickets) == 0 {
		return nil
	}
	states, err := c.ClaimsOf(ctx, instance)
	if err != nil {
		return err
	}
	held := make(map[uuid.UUID]bool, len(states))
	var granted []uuid.UUID
	for _, s := range states {
		held[s.ID] = s.Held
		if s.Held {
			granted = append(granted, s.ID)
		}
	}
	for _, t := range tickets {
		if _, there := held[t.id]; !there {
			t.markLost()
		}
	}
	c.wake(granted)
	return nil
}

// sendEnds sends the ends of connections that did not reach the store before.
func (c *Claims) sendEnds(ctx context.Context) error {
	c.mu.Lock()
	ended := maps.Clone(c.ended)
	c.mu.Unlock()
	for id, namespace := range ended {
		granted, err := c.ClaimStore.Disconnect(ctx, c.lease(), namespace, id)
		if err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.ended, id)
		c.mu.Unlock()
		c.wake(granted)
	}
	return nil
}

// settle ends the claims whose time is over.
func (c *Claims) settle(ctx context.Context) error {
	granted, ended, err := c.Settle(ctx, c.lease())
	for _, info := range ended {
		c.observer.Observe(Event{Kind: EventExpired, Namespace: info.Namespace, Name: info.ID.String(), Owner: info.Owner, At: time.Now()})
	}
	c.wake(granted)
	return err
}

func (c *Claims) readGrants(ctx context.Context) error {
	granted, err := c.NewGrants(ctx, c.lease())
	if err != nil || len(granted) == 0 {
		return err
	}
	c.wake(granted)
	return c.NoteGrants(ctx, granted)
}

// hasWaiting reports whether a connection of this process waits.
func (c *Claims) hasWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tickets {
		if !t.isHeld() {
			return true
		}
	}
	return false
}

func (c *Claims) endLease(ctx context.Context) {
	if c.lease() == uuid.Nil {
		return
	}
	c.tryCall(ctx, "sending ends", c.sendEnds)
	c.tryCall(ctx, "ending the lease", func(ctx context.Context) error { return c.EndLease(ctx, c.lease()) })
}
