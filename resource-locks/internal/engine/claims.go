package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Claims is the claims of one process. It is safe for concurrent use, and a web.Worker:
// while Run runs, it keeps the lease, wakes waiters and settles claims that have ended.
type Claims struct {
	ClaimStore // OpenNamespace, Stats, ListClaims

	observer Observer
	log      *slog.Logger

	mu       sync.Mutex
	instance uuid.UUID // new after a lost lease; Nil before the first one
	tickets  map[uuid.UUID]*Ticket
	// ended are the claims whose end did not reach the store yet.
	ended map[uuid.UUID]string // the namespace
}

// Ticket is one claim of a connection.
type Ticket struct {
	// Number is the claim's number in its namespace.
	Number int64

	id, instance uuid.UUID
	namespace    string
	owner        string
	queued       atomic.Bool // the store has answered
	held, lost   chan struct{}
	markHeld     func()
	markLost     func()
}

// Held is closed once the claim is held.
func (t *Ticket) Held() <-chan struct{} { return t.held }

// Lost is closed once the claim is gone without a call of its connection: staff released
// it, or this process lost its lease. The front then ends the connection.
func (t *Ticket) Lost() <-chan struct{} { return t.lost }

func (t *Ticket) isHeld() bool {
	select {
	case <-t.held:
		return true
	default:
		return false
	}
}

// NewClaims returns the claims of a process. Lock fails until Run has a lease.
func NewClaims(store ClaimStore, observer Observer, log *slog.Logger) *Claims {
	return &Claims{
		ClaimStore: store, observer: observer, log: log,
		tickets: map[uuid.UUID]*Ticket{}, ended: map[uuid.UUID]string{},
	}
}

// Lock stores a claim of a connection. owner names the connection for operators. The
// caller ends the ticket by Release or Disconnect. Faults: Invalid; Unavailable and
// Timeout, after which nothing is claimed.
func (c *Claims) Lock(ctx context.Context, namespace, owner string, abandon time.Duration, resources []Resource) (*Ticket, error) {
	claim := Claim{ID: uuid.New(), Namespace: namespace, Resources: resources, Abandon: abandon, Owner: owner}
	if err := checkClaim(claim); err != nil {
		return nil, err
	}
	t := c.addTicket(&claim)
	if claim.Instance == uuid.Nil {
		c.removeTicket(t)
		return nil, errNoLease
	}
	place, err := c.Enqueue(ctx, claim)
	if err != nil {
		c.removeTicket(t)
		c.endLater(t) // the claim may be stored although the answer is lost
		return nil, err
	}
	t.Number = place.Number
	t.queued.Store(true)
	if place.Held {
		t.markHeld()
		c.report(EventGranted, t)
	} else {
		c.report(EventQueued, t)
	}
	return t, nil
}

var errNoLease = fault.New(fault.Unavailable, "The service has no lease in the database yet: try again")

// Release ends a claim, held or waiting, and wakes the next ones. After an error the
// caller calls Disconnect. Faults: Unavailable, Timeout.
func (c *Claims) Release(ctx context.Context, t *Ticket) error {
	granted, err := c.Withdraw(ctx, t.instance, t.namespace, t.id)
	if err != nil {
		return err
	}
	c.removeTicket(t)
	c.report(EventReleased, t)
	c.wake(granted)
	return nil
}

// Disconnect ends the ticket of a connection that has ended without a release. It
// returns after the store has noted that; if the store cannot be reached, Run repeats it.
func (c *Claims) Disconnect(ctx context.Context, t *Ticket) {
	c.removeTicket(t)
	granted, err := c.ClaimStore.Disconnect(ctx, t.instance, t.namespace, t.id)
	if err != nil {
		c.log.WarnContext(ctx, "the end of a connection is noted later", "namespace", t.namespace, "number", t.Number, "err", err)
		c.endLater(t)
		return
	}
	c.wake(granted)
}

// ForceWithdraw is ClaimStore.ForceWithdraw. Its connection ends, wherever it is served.
func (c *Claims) ForceWithdraw(ctx context.Context, namespace string, id uuid.UUID, n Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	granted, err := c.ClaimStore.ForceWithdraw(ctx, c.lease(), namespace, id, n)
	if err != nil {
		return err
	}
	c.observer.Observe(Event{Kind: EventForced, Namespace: namespace, Name: id.String(), At: time.Now()})
	c.wake(granted)
	c.loseTicket(id)
	return nil
}

// lease returns the instance that has a lease, Nil without one.
func (c *Claims) lease() uuid.UUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance
}

// addTicket stores the ticket before the claim is enqueued, so that a grant finds it.
func (c *Claims) addTicket(claim *Claim) *Ticket {
	t := &Ticket{
		id: claim.ID, namespace: claim.Namespace, owner: claim.Owner,
		held: make(chan struct{}), lost: make(chan struct{}),
	}
	t.markHeld = sync.OnceFunc(func() { close(t.held) })
	t.markLost = sync.OnceFunc(func() { close(t.lost) })
	c.mu.Lock()
	defer c.mu.Unlock()
	claim.Instance, t.instance = c.instance, c.instance
	c.tickets[t.id] = t
	return t
}

func (c *Claims) removeTicket(t *Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tickets, t.id)
}

func (c *Claims) loseTicket(id uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tickets[id]; t != nil {
		t.markLost()
	}
}

func (c *Claims) endLater(t *Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[t.id] = t.namespace
}

// wake marks the tickets of this process among the granted claims as held.
func (c *Claims) wake(granted []uuid.UUID) {
	c.mu.Lock()
	var woken []*Ticket
	for _, id := range granted {
		if t := c.tickets[id]; t != nil && !t.isHeld() {
			t.markHeld()
			woken = append(woken, t)
		}
	}
	c.mu.Unlock()
	for _, t := range woken {
		c.report(EventGranted, t)
	}
}

// queuedTickets returns the tickets of an instance whose claims are stored.
func (c *Claims) queuedTickets(instance uuid.UUID) []*Ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	var queued []*Ticket
	for _, t := range c.tickets {
		if t.instance == instance && t.queued.Load() {
			queued = append(queued, t)
		}
	}
	return queued
}

func (c *Claims) report(kind EventKind, t *Ticket) {
	c.observer.Observe(Event{Kind: kind, Namespace: t.namespace, Name: t.id.String(), Owner: t.owner, At: time.Now()})
}
