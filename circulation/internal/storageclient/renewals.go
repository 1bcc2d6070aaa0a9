package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
)

// OpenLoan implements checkout.Renewer.
func (c *Client) OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error) {
	loan, err := first[json.RawMessage](ctx, c, loans, equals("status.name", "Open")+" and "+equals("itemId", itemID))
	if err != nil {
		return nil, fmt.Errorf("finding the item's open loan: %w", err)
	}
	return loan, nil
}

// RenewalPolicy implements checkout.Renewer. It is read anew each time: the cache
// keeps what check-outs need of the same records.
func (c *Client) RenewalPolicy(ctx context.Context, id string) (policy.RenewalPolicy, error) {
	return fetch(ctx, c, loanPolicies, id, policy.ParseRenewalPolicy)
}

// Renew implements checkout.Renewer.
func (c *Client) Renew(ctx context.Context, renewal schemas.Renewal) (json.RawMessage, error) {
	const path = "/loan-storage/renewals"
	r := request{method: http.MethodPost, route: path, path: path, want: http.StatusOK, body: renewal}
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("committing the renewal: %w", err)
	}
	var result schemas.RenewalResult
	if err := decode(r, body, &result); err != nil {
		return nil, err
	}
	if len(result.Loan) == 0 {
		return nil, unreadable(r, errors.New("it has no loan"))
	}
	return result.Loan, nil
}
