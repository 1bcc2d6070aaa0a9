package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const lockChangesPath = "/check-out-lock-changes-storage"

// Locks implements admin.Storage.
func (c *Client) Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	query := pageQuery(f.Offset, f.Limit)
	setUnlessEmpty(query, "userId", f.UserID)
	setUnlessEmpty(query, "holder", f.Holder)
	if f.Outdated != nil {
		query.Set("outdated", strconv.FormatBool(*f.Outdated))
	}
	var page schemas.CheckoutLocks
	r := get(locksPath, query)
	body, err := c.do(ctx, r)
	if err != nil {
		return page, fmt.Errorf("listing locks: %w", err)
	}
	if err := decode(r, body, &page); err != nil {
		return page, err
	}
	if page.CheckoutLocks == nil {
		return page, unreadable(r, errors.New("it has no checkoutLocks"))
	}
	return page, nil
}

// ForceRelease implements admin.Storage. Like Release it waits for a commit
// that uses the lock.
func (c *Client) ForceRelease(ctx context.Context, lockID string, reason schemas.ForcedRelease) (schemas.CheckoutLock, error) {
	var lock schemas.CheckoutLock
	if !schemas.IsUUID(lockID) {
		return lock, fault.New(fault.NotFound, "No lock has the id %q", lockID)
	}
	const action = "/forced-release"
	r := getRecord(locksPath, lockID)
	r.method, r.body = http.MethodPost, reason
	r.route, r.path = r.route+action, r.path+action
	body, err := c.do(ctx, r)
	if err != nil {
		return lock, fmt.Errorf("releasing a lock by force: %w", err)
	}
	err = decode(r, body, &lock)
	return lock, err
}

// LockChanges implements admin.Storage.
func (c *Client) LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	query := pageQuery(offset, limit)
	setUnlessEmpty(query, "kind", kind)
	var page schemas.LockChanges
	r := get(lockChangesPath, query)
	body, err := c.do(ctx, r)
	if err != nil {
		return page, fmt.Errorf("listing changes of the check-out lock: %w", err)
	}
	if err := decode(r, body, &page); err != nil {
		return page, err
	}
	if page.Changes == nil {
		return page, unreadable(r, errors.New("it has no changes"))
	}
	return page, nil
}
