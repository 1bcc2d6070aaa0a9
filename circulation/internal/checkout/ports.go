package checkout

import (
	"context"
	"encoding/json"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

// Library is what check-outs read.
type Library interface {
	library.Records
	library.LoanPolicies
}

// Admission bounds how many check-outs are worked on at once.
type Admission interface {
	// Enter waits for a place, which leave gives back. Fault: Overloaded.
	Enter(ctx context.Context, userBarcode string) (leave func(), err error)
}

// Locker is the patron's lock.
type Locker interface {
	// Acquire makes one try. Faults: LockHeld, LockQueueFull; Unavailable if the answer was lost,
	// so that the lock may have been granted.
	Acquire(ctx context.Context, req LockRequest) (lockID string, err error)

	// Release gives the lock back, after any commit that is under way with it. A lock that is gone
	// counts as released.
	Release(ctx context.Context, lockID string) error

	// ReleaseDurably is a Release that survives a crash of the database, so that no commit with the
	// lock happens after it.
	ReleaseDurably(ctx context.Context, lockID string) error

	// ReleaseAcquisition gives back the lock that the tries with this acquisition id were granted,
	// if there is one.
	ReleaseAcquisition(ctx context.Context, userID, acquisitionID string) error
}

// LockRequest is one try to get a patron's lock.
type LockRequest struct {
	UserID        string
	TTL           time.Duration
	AcquisitionID string        // the same for all tries of one acquisition
	Wait          time.Duration // how long storage may wait for the lock
}

// Committer writes a check-out wholly or not at all.
type Committer interface {
	// CheckOut commits. Faults that say it did not happen: GivenUp, KeyLeaseLost, LockLost, SettingsChanged,
	// ItemChanged, RequestChanged, LimitReached, Invalid, Malformed, TooLarge, Forbidden, NotFound,
	// UnknownTenant, TenantNotReady. After any other error the outcome is unknown.
	CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error)

	// SettleCheckOut returns what a check-out of this loan lent, or that the loan was given up: then no
	// commit makes it any more. Fault: NotFound for a storage of an earlier build, which cannot settle.
	// After any other error the outcome is unknown, and a repeat may settle it.
	SettleCheckOut(ctx context.Context, loanID string) (schemas.SettledCheckOut, error)

	// CommittedLoan returns the loan of a check-out that no crash and no failover can undo. Fault:
	// NotFound. After any other error it is unknown whether the loan exists.
	CommittedLoan(ctx context.Context, id string) (json.RawMessage, error)
}

// Settings has the lock settings in force for the tenant.
type Settings interface {
	// Current may be a second old.
	Current(ctx context.Context) settings.Settings
	// Refresh asks storage.
	Refresh(ctx context.Context) settings.Settings
}
