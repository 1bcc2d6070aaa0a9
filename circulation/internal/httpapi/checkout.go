package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// checkOut handles POST /circulation/check-out-by-barcode. With the header
// Idempotency-Key a repeat is answered like the first request.
func (h circulation) checkOut(c echo.Context) error {
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	req := checkout.Request{Sent: library.Sent(body)}
	if err := web.UnmarshalExact(body, &req); err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return err
	}
	answer, err := h.lend(c.Request().Context(), key, body, req)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, loansPath+"/"+answer.LoanID)
	return c.JSON(http.StatusCreated, answer.Loan)
}

// lend checks out, with the key unless it is empty.
func (h circulation) lend(ctx context.Context, key string, body []byte, req checkout.Request) (keyed.Answer, error) {
	if key == "" {
		return describeLent(h.CheckOut(ctx, req))
	}
	hash, err := hashBody(body)
	if err != nil {
		return keyed.Answer{}, err
	}
	return h.Keyed.CheckOut(ctx, key, hash, req, describeLent)
}

// idempotencyKey reads the header; "" means that there is none. More than one key, or one
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

// hashBody returns the SHA-256, in hexadecimal, of a JSON document. It disregards spaces, the order
// of properties and the escaping of characters. Equal hashes mean equal requests if no object
// repeats a property and readers match the names of properties exactly, as package web does.
func hashBody(body []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // a large number keeps its digits
	var doc any
	if err := d.Decode(&doc); err != nil {
		return "", fault.Wrap(err, fault.Malformed, "The body cannot be read: %v", err)
	}
	canonical, err := json.Marshal(doc) // sorts the properties
	if err != nil {
		return "", fmt.Errorf("writing the canonical body: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// describeLent returns the loan of a check-out as FOLIO's clients get it.
func describeLent(lent checkout.Lent, err error) (keyed.Answer, error) {
	if err != nil {
		return keyed.Answer{}, err
	}
	known := loanview.Known{Copy: lent.Copy, User: lent.User, Group: lent.Group, Policy: lent.Policy}
	view, err := loanview.Render(lent.Loan, known)
	if err != nil {
		return keyed.Answer{}, fmt.Errorf("the item was lent as loan %s, but: %w", lent.LoanID, err)
	}
	return keyed.Answer{LoanID: lent.LoanID, Loan: view}, nil
}
