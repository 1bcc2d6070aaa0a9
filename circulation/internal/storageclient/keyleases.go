package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const keyLeases = "/check-out-request-storage"

// LeaseKey implements keyed.Storage.
func (c *Client) LeaseKey(ctx context.Context, req schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	r := send("leasing a key", http.MethodPost, keyLeases, req, http.StatusCreated).settling()
	r.or = http.StatusOK
	r.timeout = time.Duration(req.WaitMs)*time.Millisecond + lockMargin
	got, err := call(ctx, c, r, "loan id", func(lease schemas.KeyLease) bool { return schemas.IsUUID(lease.LoanID) })
	if err != nil {
		return checkout.KeyLease{}, nil, err
	}
	lease := checkout.KeyLease{ID: req.LeaseID, LoanID: got.LoanID, Taken: got.Taken}
	if got.Answer == nil {
		return lease, nil, nil
	}
	kept := &keyed.Answer{LoanID: got.LoanID, Status: got.Answer.Status}
	if kept.Status != fault.Status(fault.Invalid) {
		kept.Loan = got.Answer.Body
		return lease, kept, nil
	}
	var list refusals
	if err := json.Unmarshal(got.Answer.Body, &list); err != nil {
		return checkout.KeyLease{}, nil, unreadable(r, fmt.Errorf("its refusal: %w", err))
	}
	if len(list.Errors) == 0 {
		return checkout.KeyLease{}, nil, unreadable(r, errors.New("its refusal has no errors"))
	}
	kept.Refusal = list.Errors
	return lease, kept, nil
}

// refusals is FOLIO's errors JSON, the form in which storage sends and keeps a refusal.
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
	return c.run(ctx, changeRecord("changing a key lease", http.MethodPut, keyLeases, leaseID, change).settling())
}
