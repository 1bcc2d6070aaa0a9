package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
		timeout: req.Wait + lockMargin,
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
	r := getRecord(locksPath, lockID)
	r.method, r.want = http.MethodDelete, http.StatusNoContent
	_, err := c.do(ctx, r)
	if err == nil || fault.Is(err, fault.NotFound) {
		return nil
	}
	return fmt.Errorf("releasing the patron's lock: %w", err)
}
