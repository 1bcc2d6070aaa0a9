package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Claims is the claims of one process. It is safe for concurrent use. Its loops RunLease,
// RunExpiry, RunEnds and RunPolls keep the lease, wake waiters and settle claims that have ended.
type Claims struct {
	store    ClaimStore
	observer Observer
	log      *slog.Logger
	failures *Failures

	mu         sync.Mutex
	instance   uuid.UUID // new after a lost lease; Nil before the first one
	leaseUntil time.Time // by this process's clock, never later than in the store
	tickets    map[uuid.UUID]*Ticket
	waiting    int                // tickets that wait
	removed    map[uuid.UUID]bool // tickets that went while a page was compared, nil otherwise
}

// Ticket is one claim of a connection.
type Ticket struct {
	// Number is the claim's number in its namespace.
	Number int64

	id, instance uuid.UUID
	namespace    string
	owner        string
	paths        string
	held, lost   chan struct{}

	// Claims.mu guards these.
	storedAt time.Time // when Enqueue had answered; zero before
	waits    bool      // counted in Claims.waiting
	isHeld   bool      // held is closed
	isLost   bool      // lost is closed
	seenIn   int       // the last comparison that found it in the store
	ending   ending    // the front has ended it; it stays until the store knows
	unsent   bool      // RunEnds has to send the end
	notify   func()    // see Notify; nil for none
}

// ending is how a ticket ends in the store.
type ending int

const (
	notEnding ending = iota
	withdrawn        // nothing of it may stay
	disconnected
)

// Held is closed once the claim is held.
func (t *Ticket) Held() <-chan struct{} { return t.held }

// Lost is closed once the claim is gone without a call of its connection: staff released
// it, or this process lost its lease. The front then ends the connection.
func (t *Ticket) Lost() <-chan struct{} { return t.lost }

// Notify calls f in a goroutine of its own when the claim is held, and when it is lost. What
// happened before the call is not notified: read Held and Lost after it.
func (c *Claims) Notify(t *Ticket, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.notify = f
}

// NewClaims returns the claims of a process. Lock fails until RunLease has a lease.
func NewClaims(store ClaimStore, observer Observer, log *slog.Logger) *Claims {
	return &Claims{store: store, observer: observer, log: log, failures: NewFailures(log), tickets: map[uuid.UUID]*Ticket{}}
}

// OpenNamespace is ClaimStore.OpenNamespace. Fault: Invalid.
func (c *Claims) OpenNamespace(ctx context.Context, namespace string) error {
	if err := checkText("the namespace", namespace, MaxNamespace); err != nil {
		return err
	}
	return c.store.OpenNamespace(ctx, namespace)
}

// Stats is ClaimStore.Stats.
func (c *Claims) Stats(ctx context.Context, namespace string) (NamespaceStats, error) {
	return c.store.Stats(ctx, namespace)
}

// List is ClaimStore.ListClaims.
func (c *Claims) List(ctx context.Context, namespace string, limit int) ([]ClaimInfo, error) {
	return c.store.ListClaims(ctx, namespace, limit)
}

// Lock stores a claim of a connection. owner names the connection for operators. The
// caller ends the ticket by Release or Disconnect. Faults: Invalid; Unavailable and
// Timeout, after which nothing is claimed.
func (c *Claims) Lock(ctx context.Context, namespace, owner string, abandon time.Duration, resources []Resource) (_ *Ticket, err error) {
	claim := Claim{ID: uuid.New(), Namespace: namespace, Resources: resources, Abandon: abandon, Owner: owner}
	if err := checkClaim(claim); err != nil {
		return nil, err
	}
	t, err := c.addTicket(&claim)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.setEnding(t, withdrawn, true) // the claim may be stored although the answer is lost
		}
	}()
	defer fault.Recover(&err)
	place, err := c.store.Enqueue(ctx, claim)
	if err != nil {
		return nil, err
	}
	t.Number = place.Number
	if place.Held {
		c.wake([]uuid.UUID{t.id}) // unless another call has done so
	}
	if c.noteStored(t) {
		c.report(EventQueued, t)
	}
	return t, nil
}

var errNoLease = fault.New(fault.Unavailable, "The service has no lease in the database: try again")

// Release ends a claim, held or waiting, and wakes the next ones. After an error the
// caller calls Disconnect. Faults: Unavailable, Timeout.
func (c *Claims) Release(ctx context.Context, t *Ticket) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	granted, err := c.store.Withdraw(ctx, t.instance, t.namespace, t.id)
	if err != nil {
		return err
	}
	c.removeTicket(t)
	c.report(EventReleased, t)
	c.wake(granted)
	return nil
}

// Disconnect ends the ticket of a connection that has ended without a release. known says that the
// client knows that it holds the claim. Otherwise nothing of it stays. Disconnect returns after the
// store has noted that; if the store cannot be reached, RunEnds repeats it.
func (c *Claims) Disconnect(ctx context.Context, t *Ticket, known bool) {
	e := withdrawn
	if known {
		e = disconnected
	}
	c.setEnding(t, e, false)
	if err := c.sendEnd(context.WithoutCancel(ctx), t, e); err != nil {
		c.failures.note(ctx, endingClaims, err)
	}
}

// ForceWithdraw is ClaimStore.ForceWithdraw. Its connection ends, wherever it is served.
func (c *Claims) ForceWithdraw(ctx context.Context, namespace string, id uuid.UUID, n Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	granted, err := c.store.ForceWithdraw(ctx, c.lease(), namespace, id, n)
	if err != nil {
		return err
	}
	c.observer.Observe(Event{Kind: EventForced, Claim: true, Namespace: namespace, Name: id.String(), At: time.Now()})
	c.wake(granted)
	c.loseTicket(id)
	return nil
}
