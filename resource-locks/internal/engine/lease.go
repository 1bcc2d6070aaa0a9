package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

const (
	// pollInterval is how long a grant by another instance, or after an end, may stay
	// unnoticed.
	pollInterval = 25 * time.Millisecond
	// leaseLength is how long a process counts on its lease.
	leaseLength = 3 * time.Second
	// storedLength is the length of the lease in the store: how long the claims of a process that died
	// or froze stay before their Abandon begins. A failover may undo the last call for the lease.
	storedLength = leaseLength + leaseInterval
	// leaseInterval is how often the lease is kept, how long that may take, and how often
	// a comparison of all claims begins.
	leaseInterval = leaseLength / 3
	// leaseRetry is how soon a call for the lease that failed is repeated, because no claim
	// is granted without a lease.
	leaseRetry = leaseInterval / 4
	// startTimeout bounds a call that begins a lease after a loss. It is longer than the store's own bound,
	// after which that leaves a primary without its standby.
	startTimeout = 6 * time.Second
	// callTimeout bounds all other calls of the store.
	callTimeout = 2 * time.Second
	// endsTimeout bounds a round of sendEnds, in which each namespace may use up callTimeout.
	endsTimeout = 30 * time.Second
)

// endingClaims is logged by loops and by connections.
const endingClaims = "ending claims"

// RunLease keeps a lease until ctx is done, and then ends it: after the connections have
// ended. Nothing else runs in its loop, because a slow call would cost the lease.
func (c *Claims) RunLease(ctx context.Context) {
	tick := time.NewTicker(leaseInterval)
	defer tick.Stop()
	failed := false
	for {
		timeout := leaseInterval
		if c.lease() == uuid.Nil {
			timeout = startTimeout
		}
		kept := c.failures.Try(ctx, timeout, "keeping the lease", c.RenewLease)
		switch {
		case kept && failed:
			tick.Reset(leaseInterval)
		case !kept && !failed:
			tick.Reset(leaseRetry)
		}
		failed = !kept
		select {
		case <-ctx.Done():
			c.stopLease(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
	}
}

// RunExpiry loses a lease that was not kept in time, until ctx is done. The store cannot be
// asked then, and may give the claims to others.
func (c *Claims) RunExpiry(ctx context.Context) {
	for {
		wait := leaseInterval // a new lease is longer
		if c.lease() != uuid.Nil {
			wait = c.leaseLeft()
		}
		if !pace.Wait(ctx, wait) {
			return
		}
		if c.lease() != uuid.Nil && c.leaseLeft() <= 0 {
			c.loseLease(ctx)
		}
	}
}

// RunEnds repeats the ends of claims that did not reach the store, until ctx is done. Nothing else
// runs in its loop, because a namespace that another process holds makes each call slow.
func (c *Claims) RunEnds(ctx context.Context) {
	for range pace.Every(ctx, leaseInterval, leaseInterval) {
		c.failures.Try(ctx, endsTimeout, endingClaims, c.sendEnds)
	}
}

// RunPolls looks for what other instances and the clock have changed, until ctx is done. It
// looks often while a connection of this process waits.
func (c *Claims) RunPolls(ctx context.Context) {
	round := &comparison{complete: true, page: make([]ClaimState, pageSize)}
	settled := false // in the last round, so that there may be more
	for range pace.Every(ctx, 0, pollInterval) {
		begins := round.begin(c.lease())
		if !round.complete {
			c.failures.Try(ctx, callTimeout, "comparing claims", func(ctx context.Context) error { return c.comparePage(ctx, round) })
		}
		if begins || settled || c.hasWaiting() {
			c.failures.Try(ctx, callTimeout, "reading new grants", c.readGrants)
			c.failures.Try(ctx, callTimeout, "settling claims", func(ctx context.Context) (err error) {
				settled, err = c.settle(ctx)
				return err
			})
		}
	}
}

// RenewLease extends the lease, or begins one. After a lost lease, all tickets are lost. The first
// call comes before clients are served, and RunLease makes the others.
func (c *Claims) RenewLease(ctx context.Context) error {
	began := time.Now() // before the store's clock adds the length
	instance := c.lease()
	if instance != uuid.Nil {
		err := c.store.KeepLease(ctx, instance, storedLength)
		if err == nil {
			c.setLease(instance, began.Add(leaseLength))
		}
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		c.loseLease(ctx)
	}
	instance = uuid.New()
	if err := c.store.StartLease(ctx, instance, storedLength); err != nil {
		return err
	}
	if time.Since(began) >= leaseLength {
		return errLateLease
	}
	c.setLease(instance, began.Add(leaseLength))
	return nil
}

// errLateLease is a lease that waited so long for its confirmation. The next call begins another.
var errLateLease = fault.New(fault.Timeout, "timed out: the lease was over before it was confirmed")

func (c *Claims) loseLease(ctx context.Context) {
	c.log.ErrorContext(ctx, "the lease was lost, so all connections with claims end")
	c.setLease(uuid.Nil, time.Time{})
}

func (c *Claims) leaseLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.leaseUntil)
}

// setLease changes the lease and marks the tickets of a former instance as lost.
func (c *Claims) setLease(instance uuid.UUID, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instance, c.leaseUntil = instance, until
	for _, t := range c.tickets {
		if t.instance != instance {
			c.markLost(t)
		}
	}
}

// sendEnds sends the ends that did not reach the store. It leaves out the others of a namespace
// after an error there, and returns the first error.
func (c *Claims) sendEnds(ctx context.Context) (err error) {
	failed := map[string]bool{}
	for t, e := range c.listUnsent() {
		if failed[t.namespace] {
			continue
		}
		if failure := c.sendEnd(ctx, t, e); failure != nil {
			failed[t.namespace] = true
			err = cmp.Or(err, failure)
		}
	}
	return err
}

// settle ends claims whose time is over, and reports whether it changed anything.
func (c *Claims) settle(ctx context.Context) (settled bool, err error) {
	granted, ended, err := c.store.Settle(ctx, c.lease())
	for _, info := range ended {
		c.observer.Observe(Event{
			Kind: EventExpired, Claim: true, Namespace: info.Namespace, Name: FormatResources(info.Resources), Owner: info.Owner, At: time.Now(),
		})
	}
	c.wake(granted)
	return len(granted)+len(ended) > 0, err
}

func (c *Claims) readGrants(ctx context.Context) error {
	granted, err := c.store.NewGrants(ctx, c.lease())
	if err != nil {
		return err
	}
	return c.wakeFound(ctx, granted)
}

// wakeFound wakes tickets whose grant the store shows, and first notes the grants: one may be seen that no
// standby has confirmed, or on an old primary alone. The new primary may give the claim to another then.
func (c *Claims) wakeFound(ctx context.Context, granted []uuid.UUID) error {
	if len(granted) == 0 {
		return nil
	}
	held, err := c.store.NoteGrants(ctx, granted)
	if err != nil {
		return err
	}
	c.wake(held)
	return nil
}

func (c *Claims) stopLease(ctx context.Context) {
	instance := c.lease()
	if instance == uuid.Nil {
		return
	}
	c.failures.Try(ctx, callTimeout, endingClaims, c.sendEnds)
	c.failures.Try(ctx, callTimeout, "ending the lease", func(ctx context.Context) error { return c.store.EndLease(ctx, instance) })
	c.setLease(uuid.Nil, time.Time{})
}
