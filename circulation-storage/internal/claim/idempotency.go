// Package claim keeps what the Idempotency-Keys of check-outs stand for: who
// works on the check-out, which loan it will be, and what was answered.
//
// One caller at a time has the claim on a key. A claim that is not renewed within
// its lease equals no claim, and whoever comes next takes it over; the store's
// own clock alone judges that. Every claim has an id of its own, which the commit
// of the check-out shows: a caller whose claim was taken over commits nothing.
package claim

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Hash is the SHA-256 of a check-out's canonical body.
type Hash [sha256.Size]byte

// Request asks for the claim on a key.
type Request struct {
	Key      string
	BodyHash Hash
	// ClaimID is new for each claim; a repeat with the same one gets the same
	// claim, renewed.
	ClaimID uuid.UUID
	// Lease is how long the claim lives unless it is renewed, in whole
	// milliseconds.
	Lease time.Duration
	// Holder names the instance that asks; may be empty.
	Holder string
	// Wait is how long to wait while somebody else has the claim; 0 does not wait.
	Wait time.Duration
}

// Claim is a key that the caller works on, or one that is finished.
type Claim struct {
	// LoanID was chosen when the key was first seen.
	LoanID uuid.UUID
	// Taken says that the key was claimed before, so that the loan may exist. A
	// look that begins after the claim was answered decides it: the commit of any
	// earlier claim happened before, or never will.
	Taken bool
	// Answer is what the check-out was answered. nil means that it is the caller's
	// to finish.
	Answer json.RawMessage
}

// Store keeps the keys of the tenant in ctx. A key is forgotten a day after it was
// last claimed or finished.
type Store interface {
	// Claim gives the caller the claim, in one step that no other can come between:
	// on a key that is new or forgotten, or whose claim is outdated or the same. A
	// finished key is answered with its answer. Faults: RequestRunning while
	// somebody else has the claim, KeyReused for another body, Invalid for a ClaimID
	// that another key has.
	Claim(ctx context.Context, req Request) (Claim, error)

	// Running tells, without writing or blocking anybody, whether Claim would find
	// somebody else at work.
	Running(ctx context.Context, req Request) (bool, error)

	// Renew makes the claim live for lease from now on; 0 gives it up. Fault:
	// ClaimLost when somebody else has taken it, or the check-out is finished.
	Renew(ctx context.Context, claimID uuid.UUID, lease time.Duration) error

	// Finish sets the answer. The same one again is no error. Fault: ClaimLost.
	Finish(ctx context.Context, claimID uuid.UUID, answer json.RawMessage) error

	// Sweep deletes at most limit keys that are forgotten, passing over those that
	// somebody is using, and returns how many.
	Sweep(ctx context.Context, limit int) (int, error)
}

// ErrRunning is the fault for a key that somebody else works on.
func ErrRunning() error {
	return &fault.Error{
		Code: fault.RequestRunning, RetryAfter: time.Second,
		Msg: "Another request with this key is still running",
	}
}

// ErrReused is the fault for a key that was used for another body.
func ErrReused() error {
	return fault.New(fault.KeyReused, "This key was used for a request with another body")
}

// ErrClaimLost is the fault for a claim that is not, or no longer, that of an
// unfinished key.
func ErrClaimLost() error {
	return fault.New(fault.ClaimLost, "The claim was taken over, or the request is finished")
}
