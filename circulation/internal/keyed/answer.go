package keyed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Hash is the SHA-256, in hexadecimal, of a JSON document without regard to
// spaces, the order of properties and the way characters are escaped. Two
// documents with the same one ask for the same if no object repeats a property and
// readers take properties by their exact names, as the edge sees to.
func Hash(body []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // a large number keeps its digits
	var doc any
	if err := d.Decode(&doc); err != nil {
		return "", fault.Wrap(err, fault.Malformed, "The body cannot be read: %v", err)
	}
	canonical, err := json.Marshal(doc) // properties in order
	if err != nil {
		return "", fmt.Errorf("writing the canonical body: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// refusals is FOLIO's errors JSON.
type refusals struct {
	Errors fault.List `json:"errors"`
}

// refused is the answer for a verdict about the check-out; false when err is none.
// A lock that was not got or a storage that was lost is no verdict: a repeat may
// fare better.
func refused(err error) (schemas.CheckOutAnswer, bool) {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Invalid {
		return schemas.CheckOutAnswer{}, false
	}
	list := refusals{f.Details}
	if len(list.Errors) == 0 {
		list.Errors = fault.List{fault.Refusal(string(f.Code), f.Msg)}
	}
	body, err := json.Marshal(list)
	if err != nil {
		return schemas.CheckOutAnswer{}, false
	}
	return schemas.CheckOutAnswer{Status: fault.Status(f.Code), Body: body}, true
}

// again gives a kept answer: one that lent as it is, a refusal as the fault that
// it was.
func again(a schemas.CheckOutAnswer) (schemas.CheckOutAnswer, error) {
	if a.Status != fault.Status(fault.Invalid) {
		return a, nil
	}
	var list refusals
	if err := json.Unmarshal(a.Body, &list); err != nil {
		return schemas.CheckOutAnswer{}, fmt.Errorf("reading a kept refusal: %w", err)
	}
	return schemas.CheckOutAnswer{}, fault.Validation(list.Errors...)
}
