package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"checkoutlock/schemas"
)

// CheckOut implements checkout.Committer.
func (c *Client) CheckOut(ctx context.Context, commit schemas.CheckOut) (schemas.CheckOutResult, error) {
	r := request{method: http.MethodPost, route: checkOuts.path, path: checkOuts.path, want: http.StatusCreated, body: commit, settles: true}
	var result schemas.CheckOutResult
	body, err := c.do(ctx, r)
	if err != nil {
		return result, fmt.Errorf("committing the check-out: %w", err)
	}
	if err := decode(r, body, &result); err != nil {
		return result, err
	}
	if len(result.Loan) == 0 {
		return result, unreadable(r, errors.New("it has no loan"))
	}
	return result, nil
}

// CheckIn implements checkout.Returner.
func (c *Client) CheckIn(ctx context.Context, commit schemas.CheckIn) (schemas.CheckInResult, error) {
	const path = "/loan-storage/check-ins"
	r := request{method: http.MethodPost, route: path, path: path, want: http.StatusOK, body: commit}
	var result schemas.CheckInResult
	body, err := c.do(ctx, r)
	if err != nil {
		return result, fmt.Errorf("committing the check-in: %w", err)
	}
	if err := decode(r, body, &result); err != nil {
		return result, err
	}
	if len(result.Item) == 0 {
		return result, unreadable(r, errors.New("it has no item"))
	}
	return result, nil
}

// CommittedLoan implements checkout.Committer.
func (c *Client) CommittedLoan(ctx context.Context, id string) (json.RawMessage, error) {
	loan, err := one[json.RawMessage](ctx, c, checkOuts, id)
	if err != nil {
		return nil, fmt.Errorf("reading the loan of a check-out: %w", err)
	}
	return loan, nil
}

// Loan implements httpapi.Loans.
func (c *Client) Loan(ctx context.Context, id string) (json.RawMessage, error) {
	return one[json.RawMessage](ctx, c, loans, id)
}
