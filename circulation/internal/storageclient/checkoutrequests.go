package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"checkoutlock/schemas"
)

const checkOutRequests = "/check-out-request-storage"

// ClaimCheckOut implements keyed.Storage.
func (c *Client) ClaimCheckOut(ctx context.Context, req schemas.CheckOutRequest) (schemas.CheckOutClaim, error) {
	r := request{
		method: http.MethodPost, route: checkOutRequests, path: checkOutRequests, want: http.StatusCreated, or: http.StatusOK,
		timeout: time.Duration(req.WaitMs)*time.Millisecond + lockMargin, body: req, settles: true,
	}
	var claim schemas.CheckOutClaim
	body, err := c.do(ctx, r)
	if err != nil {
		return claim, fmt.Errorf("claiming a check-out: %w", err)
	}
	if err := decode(r, body, &claim); err != nil {
		return claim, err
	}
	if !schemas.IsUUID(claim.LoanID) {
		return claim, unreadable(r, errors.New("it has no loan id"))
	}
	return claim, nil
}

// ChangeClaim implements keyed.Storage.
func (c *Client) ChangeClaim(ctx context.Context, claimID string, change schemas.CheckOutClaimChange) error {
	r := getRecord(checkOutRequests, claimID)
	r.method, r.want, r.body, r.settles = http.MethodPut, http.StatusNoContent, change, true
	if _, err := c.do(ctx, r); err != nil {
		return fmt.Errorf("changing the claim on a check-out: %w", err)
	}
	return nil
}
