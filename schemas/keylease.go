package schemas

import "encoding/json"

// Bounds of /check-out-request-storage.
const (
	MaxIdempotencyKey = 255     // characters, printable ones
	MinKeyLeaseMs     = 100     // leaseMs of a lease: this to the next
	MaxKeyLeaseMs     = 600_000 // ten minutes
	MaxKeyLeaseWaitMs = 2_000   // waitMs: 0 to this
)

// IsIdempotencyKey reports whether key may be an Idempotency-Key: 1 to
// MaxIdempotencyKey printable characters, spaces among them.
func IsIdempotencyKey(key string) bool {
	return key != "" && IsPrintable(key, MaxIdempotencyKey)
}

// KeyLeaseRequest is the body of POST /check-out-request-storage (ours): it
// leases the check-out of an Idempotency-Key, so that one caller at a time works on it.
type KeyLeaseRequest struct {
	Key string `json:"key"`
	// BodyHash is the SHA-256 of the check-out's canonical body, in hexadecimal:
	// the same key with another hash is refused.
	BodyHash string `json:"bodyHash"`
	// LeaseID is chosen by the caller, new for each lease: a repeat with the same
	// one gets the same lease. It is the fence that the commit shows.
	LeaseID string `json:"claimId"`
	// LeaseMs is how long the lease lives unless it is renewed.
	LeaseMs int `json:"leaseMs"`
	// WaitMs is how long storage waits while another caller has the lease.
	WaitMs int `json:"waitMs,omitempty"`
}

// KeyLease is the answer to it: a lease, or the answer that was given.
type KeyLease struct {
	// LoanID is the loan's id, chosen when the key was first seen. All leases of
	// the key commit this loan.
	LoanID string `json:"loanId"`
	// Taken says that the key was leased before, so the loan may exist.
	Taken bool `json:"taken,omitempty"`
	// Answer is given when the check-out is finished; then nothing was leased.
	Answer *CheckOutAnswer `json:"answer,omitempty"`
}

// CheckOutAnswer is the exact answer of a check-out.
type CheckOutAnswer struct {
	Status   int             `json:"status"`
	Location string          `json:"location,omitempty"`
	Body     json.RawMessage `json:"body"`
}

// KeyLeaseChange is the body of PUT /check-out-request-storage/{claimId}
// (ours). It has one of the two.
type KeyLeaseChange struct {
	// LeaseMs renews the lease; 0 gives it up, so that a repeat may try again.
	LeaseMs *int `json:"leaseMs,omitempty"`
	// Answer ends the check-out: repeats get this answer.
	Answer *CheckOutAnswer `json:"answer,omitempty"`
}
