package storageclient

import (
	"context"
	"fmt"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Lock implements admin.Storage.
func (c *Client) Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error) {
	var lock schemas.CheckoutLock
	if !schemas.IsUUID(lockID) {
		return lock, fault.New(fault.NotFound, "No lock has the id %q", lockID)
	}
	r := getRecord(locksPath, lockID)
	body, err := c.do(ctx, r)
	if err != nil {
		return lock, fmt.Errorf("reading a lock: %w", err)
	}
	err = decode(r, body, &lock)
	return lock, err
}
