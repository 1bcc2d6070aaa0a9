// Package checkout lends: it validates a check-out, takes the patron's lock,
// counts again, commits, and releases. It also takes items back. What it needs of
// the rest of the world stands here as small interfaces.
package checkout

import (
	"context"
	"encoding/json"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

// Library finds records. Every method returns a fault with code NotFound when
// there is no such record; other faults end the check-out. Reference records
// (locations, types, groups, policies, rules) may be up to two seconds old.
type Library interface {
	Blocks
	Queues

	UserByBarcode(ctx context.Context, barcode string) (User, error)
	ItemByBarcode(ctx context.Context, barcode string) (Item, error)
	Item(ctx context.Context, id string) (Item, error)
	Holdings(ctx context.Context, id string) (Holdings, error)
	Instance(ctx context.Context, id string) (Instance, error)
	Location(ctx context.Context, id string) (Location, error)
	MaterialType(ctx context.Context, id string) (Named, error)
	ServicePoint(ctx context.Context, id string) (Named, error)
	Group(ctx context.Context, id string) (Group, error)
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
	FixedSchedule(ctx context.Context, id string) (policy.FixedSchedule, error)

	// ProxyRelations returns the relations by which the proxy may borrow for the
	// sponsor, also those that ended. It is never cached.
	ProxyRelations(ctx context.Context, proxyID, sponsorID string) ([]ProxyRelation, error)

	// Rules returns the tenant's compiled circulation rules. Its error is that of
	// policy.Compile when the stored text does not compile.
	Rules(ctx context.Context) (*policy.Rules, error)

	// HasOpenLoan tells whether the item is on loan.
	HasOpenLoan(ctx context.Context, itemID string) (bool, error)

	// OpenLoans counts a patron's open loans as FOLIO's item limit does. It is never
	// cached. Fault: LockLost.
	OpenLoans(ctx context.Context, c LoanCount) (int, error)
}

// LoanCount says which open loans to count.
type LoanCount struct {
	UserID         string
	MaterialTypeID string // empty does not narrow the count
	LoanTypeID     string // empty does not narrow the count
	// LockID is the patron's lock under which the count decides, empty before that.
	// When the lock is gone, there is no count but LockLost.
	LockID string
}

// Locker is the patron's lock.
type Locker interface {
	// Acquire makes one try. Faults: LockHeld, LockQueueFull; Unavailable when the
	// answer was lost, so that the lock may have been granted.
	Acquire(ctx context.Context, req LockRequest) (lockID string, err error)

	// Release gives the lock back, after any commit that is under way with it. A
	// lock that is gone already counts as released.
	Release(ctx context.Context, lockID string) error

	// ReleaseDurably is a Release that survives a crash of the database, so that no
	// commit with the lock happens after it.
	ReleaseDurably(ctx context.Context, lockID string) error

	// ReleaseRequest gives back the lock that the tries with this request id were
	// granted, if there is one.
	ReleaseRequest(ctx context.Context, userID, requestID string) error
}

// LockRequest is one try to get a patron's lock.
type LockRequest struct {
	UserID    string
	TTL       time.Duration
	RequestID string        // the same for all tries of one acquisition
	Wait      time.Duration // how long storage may wait for the lock
}

// Committer writes a check-out wholly or not at all.
type Committer interface {
	// CheckOut commits. Faults that say it did not happen: ClaimLost, LockLost,
	// SettingsChanged, ItemChanged, RequestChanged, Invalid, Malformed, TooLarge,
	// Forbidden, NotFound, UnknownTenant. Every other error leaves the outcome open.
	CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error)

	// CommittedLoan returns the loan of a check-out that no crash and no failover can
	// undo. Fault: NotFound. Every other error leaves open whether the loan exists.
	CommittedLoan(ctx context.Context, id string) (json.RawMessage, error)
}

// Settings tells the lock settings in force for the tenant.
type Settings interface {
	// Current may be a second old.
	Current(ctx context.Context) settings.Settings
	// Refresh asks storage.
	Refresh(ctx context.Context) settings.Settings
}
