package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// checkOut handles POST /circulation/check-out-by-barcode. With the header
// Idempotency-Key a repeat is answered like the first one.
func (h circulation) checkOut(c echo.Context) error {
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	var req checkout.Request
	if err := web.UnmarshalExact(body, &req); err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	var answer schemas.CheckOutAnswer
	if key == "" {
		answer, err = h.lend(ctx, req)
	} else {
		admit := func(ctx context.Context) (leave func(), err error) { return h.CheckOuts.Admit(ctx, req) }
		answer, err = h.Requests.Do(ctx, key, body, admit, func(ctx context.Context, claim keyed.Claim) (schemas.CheckOutAnswer, error) {
			return h.lendClaimed(ctx, req, claim)
		})
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, answer.Location)
	return c.JSON(answer.Status, answer.Body)
}

// idempotencyKey reads the header; "" when there is none. More than one, and one
// that is empty, too long or not printable, is Malformed.
func idempotencyKey(header http.Header) (string, error) {
	keys := header.Values(schemas.IdempotencyKeyHeader)
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		return "", fault.New(fault.Malformed, "The header %s was sent %d times, allowed is once", schemas.IdempotencyKeyHeader, len(keys))
	case !schemas.IsIdempotencyKey(keys[0]):
		return "", fault.New(fault.Malformed, "The header %s is %s, allowed are 1 to %d printable characters",
			schemas.IdempotencyKeyHeader, fault.Shown(keys[0]), schemas.MaxIdempotencyKey)
	}
	return keys[0], nil
}

func (h circulation) lend(ctx context.Context, req checkout.Request) (schemas.CheckOutAnswer, error) {
	lent, err := h.CheckOuts.CheckOut(ctx, req)
	if err != nil {
		return schemas.CheckOutAnswer{}, err
	}
	return answerLent(lent)
}

// lendClaimed lends the loan that a key stands for, unless somebody who worked on
// it before has done so.
func (h circulation) lendClaimed(ctx context.Context, req checkout.Request, claim keyed.Claim) (schemas.CheckOutAnswer, error) {
	req.LoanID, req.ClaimID, req.Admitted = claim.LoanID, claim.ID, true
	if claim.Taken {
		lent, done, err := h.CheckOuts.Committed(ctx, req)
		if err != nil {
			return schemas.CheckOutAnswer{}, err
		}
		if done {
			return answerLent(lent)
		}
	}
	return h.lend(ctx, req)
}

// answerLent is the answer to a check-out that lent.
func answerLent(lent checkout.Lent) (schemas.CheckOutAnswer, error) {
	var stored struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(lent.Loan, &stored); err != nil {
		return schemas.CheckOutAnswer{}, fmt.Errorf("the item was lent, but storage's answer cannot be read: %w", err)
	}
	view, err := loanview.Render(lent.Loan, loanview.KnownOf(lent))
	if err != nil {
		return schemas.CheckOutAnswer{}, fmt.Errorf("the item was lent as loan %s, but: %w", stored.ID, err)
	}
	return schemas.CheckOutAnswer{Status: http.StatusCreated, Location: "/circulation/loans/" + stored.ID, Body: view}, nil
}
