package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const keyLeases = "/check-out-request-storage"

// LeaseKey implements keyed.Storage.
func (c *Client) LeaseKey(ctx context.Context, req schemas.KeyLeaseRequest) (keyed.Leased, error) {
	r := send("leasing a key", http.MethodPost, keyLeases, req, http.StatusCreated).settling()
	r.or = http.StatusOK
	r.timeout = time.Duration(req.WaitMs)*time.Millisecond + lockMargin
	lease, err := call(ctx, c, r, "loan id", func(lease schemas.KeyLease) bool { return schemas.IsUUID(lease.LoanID) })
	if err != nil {
		return keyed.Leased{}, err
	}
	leased := keyed.Leased{LoanID: lease.LoanID, Taken: lease.Taken}
	if lease.Answer == nil {
		return leased, nil
	}
	leased.Status = lease.Answer.Status
	leased.Answer = &keyed.Answer{LoanID: lease.LoanID}
	if leased.Status != fault.Status(fault.Invalid) {
		leased.Answer.Loan = lease.Answer.Body
		return leased, nil
	}
	var list refusals
	if err := json.Unmarshal(lease.Answer.Body, &list); err != nil {
		return keyed.Leased{}, unreadable(r, fmt.Errorf("its refusal: %w", err))
	}
	if len(list.Errors) == 0 {
		return keyed.Leased{}, unreadable(r, errors.New("its refusal has no errors"))
	}
	leased.Answer.Refusal = list.Errors
	return leased, nil
}

// refusals is FOLIO's errors JSON, the form in which storage keeps a refusal.
type refusals struct {
	Errors []fault.Detail `json:"errors"`
}

// RenewLease implements keyed.Storage.
func (c *Client) RenewLease(ctx context.Context, leaseID string, lease time.Duration) error {
	return c.changeLease(ctx, leaseID, schemas.KeyLeaseChange{LeaseMs: new(int(lease.Milliseconds()))})
}

// AnswerLease implements keyed.Storage. Storage keeps an answer as FOLIO's clients get it.
func (c *Client) AnswerLease(ctx context.Context, leaseID string, a keyed.Answer) error {
	answer := schemas.CheckOutAnswer{Status: http.StatusCreated, Location: "/circulation/loans/" + a.LoanID, Body: a.Loan}
	if len(a.Refusal) > 0 {
		body, err := json.Marshal(refusals{a.Refusal})
		if err != nil {
			return fmt.Errorf("writing a refusal: %w", err)
		}
		answer = schemas.CheckOutAnswer{Status: fault.Status(fault.Invalid), Body: body}
	}
	return c.changeLease(ctx, leaseID, schemas.KeyLeaseChange{Answer: &answer})
}

func (c *Client) changeLease(ctx context.Context, leaseID string, change schemas.KeyLeaseChange) error {
	_, err := c.do(ctx, changeRecord("changing a key lease", http.MethodPut, keyLeases, leaseID, change).settling())
	return err
}
