// Package lock is the patron's check-out lock: what a lock is, when one may be
// taken, and who waits for it.
//
// A lock that outlived its time to live is outdated, and an outdated lock equals
// no lock: whoever comes next takes it over. The store's own clock alone judges
// that; no application clock decides anything.
package lock

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Lock is one acquisition of a patron's lock. Its ID is new with every grant and
// takeover and is never used twice, so it is also the fence that a commit shows.
type Lock struct {
	ID        uuid.UUID
	UserID    uuid.UUID     // the patron
	CreatedAt time.Time     // granted or last renewed, by the store's clock
	TTL       time.Duration // as its holder asked for it, in whole milliseconds
	RequestID uuid.UUID     // the request that got it; Nil means none was named
	Holder    string        // the instance that asked, for whoever looks; may be empty
	Outdated  bool          // judged by its own TTL when the store answered
	Age       time.Duration // since CreatedAt when the store answered, by its clock; below 0 if that was set back since
	// OkapiRequestID is the X-Okapi-Request-Id of the call that got or last renewed
	// the lock: logs and the history call its check-out so. May be empty.
	OkapiRequestID string
}

// ExpiresAt is when the lock becomes outdated.
func (l Lock) ExpiresAt() time.Time { return l.CreatedAt.Add(l.TTL) }

// Request asks for a patron's lock.
type Request struct {
	UserID uuid.UUID
	// TTL is the new lock's time to live, in whole milliseconds. A lock that is
	// older than this is outdated for this request too, whatever its own TTL
	// (FOLIO's rule); so 0 takes over at once.
	TTL time.Duration
	// RequestID makes the request repeatable: while its lock lives, the same id
	// gets the same lock again, renewed, and between two tries it keeps its place
	// in line for a moment. Nil means not repeatable.
	RequestID uuid.UUID
	// Holder names the instance that asks; may be empty.
	Holder string
	// OkapiRequestID is the X-Okapi-Request-Id of the call that asks, for whoever
	// looks; may be empty. It decides nothing.
	OkapiRequestID string
	// Wait is how long to wait for a lock that is held; 0 does not wait.
	Wait time.Duration
}

// Outcome is how an acquire ended.
type Outcome string

// The outcomes. A Store answers with the first three; the others name errors,
// for an Observer.
const (
	Granted   Outcome = "granted"    // there was no lock
	Renewed   Outcome = "renewed"    // the same request had it already
	TakenOver Outcome = "taken_over" // an outdated lock was replaced
	Held      Outcome = "held"       // somebody else has it
	QueueFull Outcome = "queue_full" // too many wait already
	Cancelled Outcome = "cancelled"  // the caller left
	Failed    Outcome = "error"
)

// Outcomes returns every outcome, in the order of declaration.
func Outcomes() []Outcome {
	return []Outcome{Granted, Renewed, TakenOver, Held, QueueFull, Cancelled, Failed}
}

// Peek is what a Store sees without touching anything.
type Peek struct {
	Free      bool      // no lock, or one that is outdated for the request
	RequestID uuid.UUID // the request that has the live lock; Nil when free or not named
}

// Filter selects locks to list. Its zero value matches all, but lists none: Limit 0
// only counts.
type Filter struct {
	UserID   uuid.UUID // Nil is all patrons
	Holder   string    // exactly this instance; empty is any, and none
	Outdated *bool     // as Lock.Outdated; nil is both
	Offset   int
	Limit    int
}

// Store keeps the locks of the tenant in ctx. Its clock judges what is outdated:
// a lock older than its TTL (strictly; at exactly the TTL it still holds), and one
// dated more than 5 s in the future, which a clock that was set back left behind.
// locktest.RunStore is this contract as tests.
type Store interface {
	// Acquire takes the lock in one step that no other caller can come between:
	// granted when there is none, renewed under the same ID while req.RequestID
	// has it, taken over when it is outdated by its own TTL or by req.TTL. It does
	// not wait for req.Wait, and for a commit that holds the lock only briefly.
	// Once begun it is seen through although ctx ends, so that no grant goes
	// unnoticed: a caller whose ctx ended withdraws what it got. Fault: LockHeld.
	Acquire(ctx context.Context, req Request) (Lock, Outcome, error)

	// Peek looks how req would fare, without writing or blocking anybody.
	Peek(ctx context.Context, req Request) (Peek, error)

	// Withdraw deletes l if it is still exactly as Acquire answered it. One that
	// was renewed, released or taken over since stays as it is; no error.
	Withdraw(ctx context.Context, l Lock) error

	// Release deletes the lock and returns it as it was, outdated or not. It waits
	// for a commit that holds the lock. Fault: NotFound.
	Release(ctx context.Context, id uuid.UUID) (Lock, error)

	// ReleaseDurably is Release that a crash of the store cannot undo. That holds for
	// NotFound too: whatever removed the lock before is durable when it returns.
	ReleaseDurably(ctx context.Context, id uuid.UUID) (Lock, error)

	// ReleaseRequest is Release of the patron's lock if the request has it, decided
	// in one step. Fault: NotFound.
	ReleaseRequest(ctx context.Context, userID, requestID uuid.UUID) (Lock, error)

	// ForceRelease is Release by somebody who does not hold the lock. It notes as a
	// Change who did it, with the call in ctx, in the same step: either both happen
	// or neither, and what it answered outlives a crash. Fault: NotFound.
	ForceRelease(ctx context.Context, id uuid.UUID, n Note) (Lock, error)

	// Get returns the lock, outdated or not. Fault: NotFound.
	Get(ctx context.Context, id uuid.UUID) (Lock, error)

	// List returns a page of the matching locks, outdated ones too, oldest first,
	// and how many match in all.
	List(ctx context.Context, f Filter) ([]Lock, int, error)

	// Sweep deletes at most limit locks that have been outdated for longer than
	// grace, passing over those that somebody is using, and returns how many.
	Sweep(ctx context.Context, grace time.Duration, limit int) (int, error)
}

// Observer is told what happens, for metrics. Its methods are called from many
// goroutines and must not block.
type Observer interface {
	// Acquired is called once per acquire, with the time from call to answer.
	Acquired(o Outcome, took time.Duration)
	// Waiting adds delta to the number of callers that wait for a lock.
	Waiting(delta int)
	// Released is called for each live lock that was released by its holder.
	Released()
}
