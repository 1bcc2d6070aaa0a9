package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	locksPath = "/check-out-lock-storage"
	// lockMargin is how much longer than storage's wait an acquire may take.
	lockMargin = 5 * time.Second
)

// Acquire implements checkout.Locker.
func (c *Client) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	ttl := int(req.TTL.Milliseconds())
	r := request{
		method: http.MethodPost, route: locksPath, path: locksPath, want: http.StatusCreated,
		timeout: req.Wait + lockMargin, settles: true,
		body: schemas.CheckoutLockRequest{
			UserID: req.UserID, TTLMs: &ttl, RequestID: req.RequestID, WaitMs: int(req.Wait.Milliseconds()),
		},
	}
	body, err := c.do(ctx, r)
	if err != nil {
		return "", fmt.Errorf("acquiring the patron's lock: %w", err)
	}
	var lock schemas.CheckoutLock
	if err := decode(r, body, &lock); err != nil {
		return "", err
	}
	if !schemas.IsUUID(lock.ID) {
		return "", unreadable(r, errors.New("it has no lock id"))
	}
	return lock.ID, nil
}

// Release implements checkout.Locker. Storage's DELETE waits for a commit that
// uses the lock.
func (c *Client) Release(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, nil)
}

// ReleaseDurably implements checkout.Locker. A lock that is gone counts as released
// here too: storage answers that only after making durable what removed it.
func (c *Client) ReleaseDurably(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, url.Values{"durable": {"true"}})
}

func (c *Client) release(ctx context.Context, lockID string, query url.Values) error {
	r := getRecord(locksPath, lockID)
	r.method, r.want, r.query, r.settles = http.MethodDelete, http.StatusNoContent, query, true
	_, err := c.do(ctx, r)
	if err == nil || fault.Is(err, fault.NotFound) {
		return nil
	}
	return fmt.Errorf("releasing the patron's lock: %w", err)
}

// ReleaseRequest implements checkout.Locker.
func (c *Client) ReleaseRequest(ctx context.Context, userID, requestID string) error {
	r := request{
		method: http.MethodDelete, route: locksPath, path: locksPath, want: http.StatusNoContent,
		query: url.Values{"userId": {userID}, "requestId": {requestID}}, settles: true,
	}
	if _, err := c.do(ctx, r); err != nil {
		return fmt.Errorf("releasing the lock of a request: %w", err)
	}
	return nil
}
