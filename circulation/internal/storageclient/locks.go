package storageclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	locksPath       = "/check-out-lock-storage"
	lockChangesPath = "/check-out-lock-changes-storage"
	// lockMargin is how much longer than storage's wait an acquire may take.
	lockMargin = 5 * time.Second
)

// Acquire implements checkout.Locker.
func (c *Client) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	r := send(http.MethodPost, locksPath, schemas.CheckoutLockRequest{
		UserID: req.UserID, TTLMs: new(int(req.TTL.Milliseconds())), RequestID: req.RequestID, WaitMs: int(req.Wait.Milliseconds()),
	}, http.StatusCreated)
	r.doing, r.timeout, r.settles = "acquiring the patron's lock", req.Wait+lockMargin, true
	lock, err := call(ctx, c, r, "lock id", func(lock schemas.CheckoutLock) bool { return schemas.IsUUID(lock.ID) })
	return lock.ID, err
}

// Release implements checkout.Locker. Storage's DELETE waits for a commit that
// uses the lock.
func (c *Client) Release(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, nil)
}

// ReleaseDurably implements checkout.Locker. A missing lock counts as released here too:
// storage answers 404 only after its removal is durable.
func (c *Client) ReleaseDurably(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, url.Values{"durable": {"true"}})
}

func (c *Client) release(ctx context.Context, lockID string, query url.Values) error {
	r := getRecord(locksPath, lockID)
	r.doing, r.method, r.want = "releasing the patron's lock", http.MethodDelete, http.StatusNoContent
	r.query, r.settles = query, true
	if _, err := c.do(ctx, r); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}

// ReleaseRequest implements checkout.Locker.
func (c *Client) ReleaseRequest(ctx context.Context, userID, requestID string) error {
	r := get(locksPath, url.Values{"userId": {userID}, "requestId": {requestID}})
	r.doing, r.method, r.want = "releasing the lock of a request", http.MethodDelete, http.StatusNoContent
	r.settles = true
	_, err := c.do(ctx, r)
	return err
}

// Locks implements admin.Storage.
func (c *Client) Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	query := pageQuery(f.Offset, f.Limit)
	setUnlessEmpty(query, "userId", f.UserID)
	setUnlessEmpty(query, "holder", f.Holder)
	if f.Outdated != nil {
		query.Set("outdated", strconv.FormatBool(*f.Outdated))
	}
	r := get(locksPath, query)
	r.doing = "listing locks"
	return call(ctx, c, r, "checkoutLocks", func(page schemas.CheckoutLocks) bool { return page.CheckoutLocks != nil })
}

// Lock implements admin.Storage.
func (c *Client) Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error) {
	r := getRecord(locksPath, lockID)
	r.doing = "reading a lock"
	return c.callLock(ctx, lockID, r)
}

// ForceRelease implements admin.Storage. Like Release it waits for a commit
// that uses the lock.
func (c *Client) ForceRelease(ctx context.Context, lockID string, reason schemas.ForcedRelease) (schemas.CheckoutLock, error) {
	const action = "/forced-release"
	r := getRecord(locksPath, lockID)
	r.doing, r.method, r.body = "releasing a lock by force", http.MethodPost, reason
	r.route, r.path = r.route+action, r.path+action
	return c.callLock(ctx, lockID, r)
}

// callLock makes a call that is answered with the lock that its path names.
func (c *Client) callLock(ctx context.Context, lockID string, r request) (schemas.CheckoutLock, error) {
	if !schemas.IsUUID(lockID) {
		return schemas.CheckoutLock{}, fault.New(fault.NotFound, "No lock has the id %q", lockID)
	}
	return call[schemas.CheckoutLock](ctx, c, r, "", nil)
}

// LockChanges implements admin.Storage.
func (c *Client) LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	query := pageQuery(offset, limit)
	setUnlessEmpty(query, "kind", kind)
	r := get(lockChangesPath, query)
	r.doing = "listing changes of the check-out lock"
	return call(ctx, c, r, "changes", func(page schemas.LockChanges) bool { return page.Changes != nil })
}
