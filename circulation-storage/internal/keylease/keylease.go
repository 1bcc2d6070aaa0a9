// Package keylease keeps the Idempotency-Keys of check-outs: the caller that works on the
// check-out, the id of its loan, and the answer.
//
// One caller at a time has the lease on a key. A lease that is not renewed in
// time equals no lease, and the next caller takes it over. Only the store's clock judges
// that. Every lease has an id of its own, which the commit of the check-out shows. So a
// caller whose lease was taken over commits nothing.
package keylease

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

// Hash is the SHA-256 of a check-out's canonical body.
type Hash [sha256.Size]byte

// Request is a request for the lease on a key.
type Request struct {
	Key      string
	BodyHash Hash
	// LeaseID is new for each lease. A repeat with the same one renews the lease.
	LeaseID uuid.UUID
	// Duration is how long the lease lives unless it is renewed, in whole milliseconds.
	Duration time.Duration
	// Holder names the calling instance; may be empty.
	Holder string
	// Wait is how long to wait while another caller has the lease; 0 does not wait.
	Wait time.Duration
}

// Lease is a key that the caller works on, or a finished one.
type Lease struct {
	// LoanID was chosen with the first lease.
	LoanID uuid.UUID
	// Taken means that the key was leased before, so the loan may exist. A read of the
	// loan that begins after this answer is final: no earlier lease can commit any more. Only a crash of
	// PostgreSQL that loses this lease lets the earlier one commit. Then the commit of this one is refused
	// as KeyLeaseLost, so there is one loan at most.
	Taken bool
	// Answer is the answer of a finished check-out. nil means that the caller has to
	// finish it.
	Answer json.RawMessage
}

// Store keeps the keys of the tenant in ctx. A key expires a day after it was last leased
// or finished.
type Store interface {
	// Lease atomically leases a key to the caller: a new or expired one, or one
	// whose lease is outdated or the same. For a finished key it returns the answer.
	// Faults: RequestRunning while another caller has the lease, KeyReused for another
	// body, Invalid for the LeaseID of another key.
	Lease(ctx context.Context, req Request) (Lease, error)

	// Running reports whether Lease would return RequestRunning. It neither writes nor
	// blocks others.
	Running(ctx context.Context, req Request) (bool, error)

	// Renew lets the lease end after d from now on; 0 gives it up. Fault: KeyLeaseLost if
	// another caller has taken it, or the check-out is finished.
	Renew(ctx context.Context, leaseID uuid.UUID, d time.Duration) error

	// Finish sets the answer. A repeat with the same answer is no error. Fault:
	// KeyLeaseLost.
	Finish(ctx context.Context, leaseID uuid.UUID, answer json.RawMessage) error
}

// ErrRunning is the fault for a key that another caller works on.
func ErrRunning() error {
	return &fault.Error{
		Code: fault.RequestRunning, RetryAfter: time.Second,
		Msg: "Another request with this key is still running",
	}
}

// Pauses between two polls of a waiting caller. A check-out takes some twenty
// milliseconds, or seconds if it waits for the patron's lock.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 160 * time.Millisecond
)

// WaitFor is Store.Lease that waits for req.Wait while another caller has the lease. It
// holds no connection while it waits.
func WaitFor(ctx context.Context, store Store, req Request) (Lease, error) {
	end := time.Now().Add(req.Wait)
	pause := firstPause
	for {
		lease, err := store.Lease(ctx, req)
		if !fault.Is(err, fault.RequestRunning) {
			return lease, err
		}
		running := true
		for running {
			rest := time.Until(end)
			if rest <= 0 {
				return Lease{}, err
			}
			if !pace.Wait(ctx, min(rest, randomPause(pause))) {
				return Lease{}, ctx.Err()
			}
			pause = min(2*pause, longestPause)
			var failed error
			if running, failed = store.Running(ctx, req); failed != nil {
				return Lease{}, failed
			}
		}
	}
}

// randomPause spreads the polls of callers that wait for the same lease.
func randomPause(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2) //nolint:gosec // spreads load, guards nothing
}
