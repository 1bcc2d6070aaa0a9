package admin

import (
	"context"
	"fmt"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/redact"
)

// LockFilter selects locks to list; the zero value is all, oldest first.
type LockFilter struct {
	UserID   string // a patron's id; empty means any
	Holder   string // the exact name of the instance that holds them; empty means any
	Outdated *bool  // nil means both
	Offset   int
	Limit    int // 1 to schemas.MaxLockPage
}

// Locks returns the stored locks, oldest first, outdated ones too. Fault: Invalid
// for a filter that cannot be used.
func (s *Service) Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error) {
	if !schemas.IsPrintable(f.Holder, schemas.MaxInstanceName) {
		return schemas.CheckoutLocks{}, invalidValue("holder", fmt.Sprintf("must have at most %d printable characters", schemas.MaxInstanceName), f.Holder)
	}
	return s.storage.Locks(ctx, f)
}

// Release releases a lock by force. That is safe at any time: storage refuses the commit of
// the holder. Its check-out acquires the lock and counts again while its machine still
// waits, or else ends. The history of changes keeps the user who acts and the reason.
// Faults: NotFound; Invalid for a reason that is blank or too long.
func (s *Service) Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error) {
	why, err := schemas.ParseChangeReason(reason)
	switch {
	case err != nil:
		return schemas.CheckoutLock{}, invalidValue("reason", err.Error(), reason)
	case why == "":
		return schemas.CheckoutLock{}, invalidValue("reason",
			fmt.Sprintf("is required, 1 to %d characters", schemas.MaxChangeReason), reason)
	}
	name := s.actorName(ctx)
	lock, err := s.storage.ForceRelease(ctx, lockID, schemas.ForcedRelease{Reason: why, ByName: name})
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.NotFound, "There is no such lock any more: it was released or taken over meanwhile")
	}
	if err == nil {
		s.log.InfoContext(ctx, "lock released by force", "lock_id", lock.ID, "patron", redact.Mask(lock.UserID),
			"holder", lock.Holder, "lock_okapi_request_id", lock.OkapiRequestID, "outdated", lock.Outdated, "by", name, "by_id", okapi.FromContext(ctx).UserID)
	}
	return lock, err
}
