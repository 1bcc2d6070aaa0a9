// Package lock grants the patrons' check-out locks, with a line of waiters per patron.
//
// A lock older than its time to live is outdated. An outdated lock equals no lock: the
// next caller takes it over. Only the store's clock judges that, never a clock of the
// application.
package lock

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Lock is one grant of a patron's lock. Its ID is new with every grant and takeover and is
// never used twice, so a commit shows it as a fence.
type Lock struct {
	ID            uuid.UUID
	UserID        uuid.UUID     // the patron
	CreatedAt     time.Time     // granted or last renewed, by the store's clock
	TTL           time.Duration // as requested, in whole milliseconds
	AcquisitionID uuid.UUID     // the request that got it; Nil if none was named
	Holder        string        // the instance that requested it, for operators; may be empty
	Outdated      bool          // by its own TTL, at the time of the answer
	Age           time.Duration // at the time of the answer, by the store's clock; negative after that was set back
	// OkapiRequestID is the X-Okapi-Request-Id of the call that got or last renewed the
	// lock. Logs and the history name the check-out by it. It may be empty.
	OkapiRequestID string
}

// Request is a request for a patron's lock.
type Request struct {
	UserID uuid.UUID
	// TTL is the new lock's time to live, in whole milliseconds. A lock older than this is
	// outdated for this request, whatever its own TTL (FOLIO's rule). So 0 takes over at
	// once.
	TTL time.Duration
	// AcquisitionID makes the request repeatable. A repeat renews and returns the lock of the
	// first copy, and continues its place in line for a moment. Nil means not repeatable.
	AcquisitionID uuid.UUID
	// Holder names the calling instance; may be empty.
	Holder string
	// OkapiRequestID is the X-Okapi-Request-Id of the call, for operators; may be empty.
	OkapiRequestID string
	// Wait is how long to wait for a held lock; 0 does not wait.
	Wait time.Duration
}

// Outcome is how an acquire ended.
type Outcome string

// The outcomes. A Store returns the first three; the others are errors, for an Observer.
const (
	Granted   Outcome = "granted"    // there was no lock
	Renewed   Outcome = "renewed"    // the same request had it
	TakenOver Outcome = "taken_over" // an outdated lock was replaced
	Held      Outcome = "held"       // another request has it
	QueueFull Outcome = "queue_full" // too many callers wait
	Cancelled Outcome = "cancelled"  // the caller left
	Failed    Outcome = "error"
)

// Outcomes returns every outcome, in the order of declaration.
func Outcomes() []Outcome {
	return []Outcome{Granted, Renewed, TakenOver, Held, QueueFull, Cancelled, Failed}
}

// Peek is the result of reading a patron's lock.
type Peek struct {
	Free          bool          // no lock, or one that is outdated for the request
	LockID        uuid.UUID     // the live lock; Nil if Free
	AcquisitionID uuid.UUID     // the request that has the live lock; Nil if none
	Age           time.Duration // of the live lock, as Lock.Age; 0 if Free
}

// Filter selects locks to list. Its zero value counts all and lists none.
type Filter struct {
	UserID   uuid.UUID // Nil is all patrons
	Holder   string    // exactly this instance; empty is all locks
	Outdated *bool     // as Lock.Outdated; nil is both
	Offset   int
	Limit    int
}

// Store keeps the locks of the tenant in ctx. Its clock judges what is outdated: a lock
// older than its TTL (strictly; at exactly the TTL it still holds), and one dated more
// than 5 s in the future, which a clock that was set back left behind. locktest.RunStore
// is this contract as tests.
type Store interface {
	// Acquire takes the lock atomically: granted if there is none, renewed under the same
	// ID if req.AcquisitionID has it, taken over if it is outdated by its own TTL or by
	// req.TTL. It ignores req.Wait, and waits only briefly for a commit that uses the
	// lock. Once begun, it completes although ctx ends, so that the caller knows what to
	// withdraw. Fault: LockHeld.
	Acquire(ctx context.Context, req Request) (Lock, Outcome, error)

	// Peek reads whether req could get the lock. It neither writes nor blocks others.
	Peek(ctx context.Context, req Request) (Peek, error)

	// Withdraw deletes l if it is still exactly as Acquire returned it. It is no error if
	// the lock was renewed, released or taken over since.
	Withdraw(ctx context.Context, l Lock) error

	// Release deletes the lock and returns it as it was, outdated or not. It waits for a
	// commit that uses the lock. Fault: NotFound.
	Release(ctx context.Context, id uuid.UUID) (Lock, error)

	// HandOver atomically replaces the lock by a new one that req is granted, as Release and
	// Acquire at once. The id is new. It waits only briefly for a commit that uses the lock.
	// Once begun, it completes although ctx ends. Faults: NotFound if id is no live lock of
	// req's patron; LockHeld after a wait in vain, with the lock as it was.
	HandOver(ctx context.Context, id uuid.UUID, req Request) (Lock, error)

	// ReleaseDurably is Release that a crash of the store cannot undo. With NotFound, the
	// earlier deletion is durable too.
	ReleaseDurably(ctx context.Context, id uuid.UUID) (Lock, error)

	// ReleaseAcquisition atomically releases the patron's lock if the request has it. Fault:
	// NotFound.
	ReleaseAcquisition(ctx context.Context, userID, acquisitionID uuid.UUID) (Lock, error)

	// ForceRelease is Release by staff. In the same transaction, it writes a Change with
	// the note and the call in ctx. A crash cannot undo it. Fault: NotFound.
	ForceRelease(ctx context.Context, id uuid.UUID, n Note) (Lock, error)

	// Get returns the lock, outdated or not. Fault: NotFound.
	Get(ctx context.Context, id uuid.UUID) (Lock, error)

	// List returns a page of the matching locks, outdated ones too, oldest first, and the
	// number of all that match.
	List(ctx context.Context, f Filter) ([]Lock, int, error)

	// Sweep deletes at most limit locks that have been outdated for longer than grace, and
	// returns how many. It skips locks in use.
	Sweep(ctx context.Context, grace time.Duration, limit int) (int, error)
}

// Observer receives events, for metrics. Its methods are called from many goroutines and
// must not block.
type Observer interface {
	// Acquired is called once per acquire, with the time from call to answer.
	Acquired(o Outcome, took time.Duration)
	// Waiting adds delta to the number of callers that wait for a lock.
	Waiting(delta int)
	// Released is called for each live lock that its holder released.
	Released()
}
