package engine

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Acquire asks for a flat lock.
type Acquire struct {
	Key
	Owner string // not empty
	Kind  string
	Value string
	TTL   time.Duration // at least 1 ms
	// Keep leaves a lock that the owner holds already as it is. Otherwise the owner
	// replaces its kind and value, and its TTL starts anew.
	Keep bool
}

// Outcome is how an acquire, a refresh or a release ended.
type Outcome string

// The outcomes.
const (
	Granted   Outcome = "granted"    // a new grant: the key was free, or its lock outdated
	Renewed   Outcome = "renewed"    // the owner held it; the TTL starts anew
	Kept      Outcome = "kept"       // the owner held it, and Acquire.Keep was set
	Held      Outcome = "held"       // another owner holds it; nothing changed
	Released  Outcome = "released"   // the lock was live and is gone
	Free      Outcome = "free"       // there was no live lock; nothing changed
	UnknownID Outcome = "unknown_id" // nothing to refresh: the last lock of the key has another id, is too old, or ended and had another owner
)

// Result is what an acquire, a refresh or a release ended with.
type Result struct {
	Lock    Lock // of the other owner for Held; zero for Free and UnknownID
	Outcome Outcome
	// Expired means that a grant replaced an outdated lock. Its expiry counts once.
	Expired bool
}

// Refresh renews a lock by its id.
type Refresh struct {
	Key
	ID    uuid.UUID
	Owner string
	TTL   time.Duration
	// ResumeWithin grants a key anew that is free, if its last lock had this id and owner, and
	// ended less than this ago. 0 never does.
	ResumeWithin time.Duration
	// ResumeAs is the id of that grant. The store chooses one for uuid.Nil.
	ResumeAs uuid.UUID
	// Amend is a JSON object, or empty. A resume sets its members in the value of the lock,
	// which then is a JSON object too.
	Amend string
}

// Filter selects live locks to list. Its zero value selects all.
type Filter struct {
	Namespace string   // empty is all
	Prefix    bool     // Namespace is the beginning of the namespaces to list
	Names     []string // exactly these; nil is all
	Kind      string   // empty is all
	// After continues a list behind this key; the zero value starts it. Limit 0 is no
	// limit.
	After Key
	Limit int
}

// SweepDelay is how late Sweep may find an outdated lock. All other methods see the end at
// once.
const SweepDelay = time.Minute

// LockStore keeps flat locks. Each method is one statement, which the store's clock
// judges. A method that changes something completes once it was sent, even if ctx ends
// meanwhile; so a call ends either as asked or without an effect. Grants and renewals
// are durable before they are answered.
//
// Faults of all methods: Unavailable if the store is not reached, Timeout if it does
// not answer in time, Invalid for what it cannot keep. After Unavailable or Timeout, a
// change may have happened. enginetest.RunLockStore is this contract as tests.
type LockStore interface {
	// Acquire grants a free or outdated key, and renews or keeps the lock of its owner.
	// Of any number of owners at once, exactly one is granted. A refused one waits for no
	// row lock and leaves the lock unchanged.
	Acquire(ctx context.Context, a Acquire) (Result, error)

	// Refresh renews the lock by its id, or resumes it: Granted, with the kind and the amended
	// value of the last lock. It ends with Held if the live lock has this id and another owner.
	Refresh(ctx context.Context, r Refresh) (Result, error)

	// Release ends the owner's lock. Outcomes: Released; Free; Held with the lock of the
	// other owner, which stays.
	Release(ctx context.Context, key Key, owner string) (Result, error)

	// ForceRelease ends the lock with this id and keeps the note, in one transaction.
	// No refresh resumes that lock. Fault: NotFound if the live lock has another id or
	// there is none.
	ForceRelease(ctx context.Context, key Key, id uuid.UUID, n Note) (Lock, error)

	// Ask stores a request for a live lock. It changes nothing else. A second request by
	// the same asker replaces the first. Fault: NotFound for a free key.
	Ask(ctx context.Context, key Key, a AskedFor) (Lock, error)

	// Fetch returns the live lock. Fault: NotFound.
	Fetch(ctx context.Context, key Key) (Lock, error)

	// List returns the live locks that match, ordered by namespace and name.
	List(ctx context.Context, f Filter) ([]Lock, error)

	// Count returns the number of live locks by namespace and kind.
	Count(ctx context.Context) ([]KindCount, error)

	// Sweep marks at most limit locks as expired that became outdated, and returns them.
	// It may find them SweepDelay late. Each expiry is returned once, by Sweep or as Expired
	// of a grant, whichever instance sees it first. Sweep forgets locks that ended longer
	// than keep ago and whose TTL is over.
	Sweep(ctx context.Context, keep time.Duration, limit int) ([]Lock, error)

	// Releases returns the latest forced releases of locks and claims, newest first.
	Releases(ctx context.Context, limit int) ([]Release, error)
}

// KindCount is a number of live locks.
type KindCount struct {
	Namespace string
	Kind      string
	Locks     int
}
