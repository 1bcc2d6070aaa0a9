package loans

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

const (
	openStatus   = "Open"
	closedStatus = "Closed"
)

// draft is a loan as staff write it, with every property that they sent.
type draft map[string]any

// embedded are the properties that clients get with a loan and send back. Storage has their records.
var embedded = [...]string{
	"item", "borrower", "feesAndFines", "patronGroupAtCheckout", "loanPolicy", "overdueFinePolicy", "lostItemPolicy",
	"checkoutServicePoint", "checkinServicePoint", "metadata",
}

// parseDraft reads a loan, which gets the id unless that is empty. It refuses what is wrong with the
// loan by itself. A loan without a status is open, and checked out without an action.
func parseDraft(body json.RawMessage, id string) (draft, error) {
	d, err := jsonschema.DecodeObject(body)
	if err != nil {
		return nil, err
	}
	for _, key := range embedded {
		delete(d, key)
	}
	if id != "" {
		d["id"] = id
	}
	if d["status"] == nil {
		d["status"] = map[string]any{"name": openStatus}
		if d["action"] == nil {
			d["action"] = "checkedout"
		}
	}
	loan := draft(d)
	if status := loan.status(); status != openStatus && status != closedStatus {
		return nil, fault.Validation(fault.Refusal("", `Loan status must be "Open" or "Closed"`, fault.Param("status", fault.Shown(status))))
	}
	if err := jsonschema.CheckRecord("loan", d); err != nil {
		return nil, err
	}
	if loan.isOpen() && loan.text("userId") == "" {
		return nil, refuse("userId", "Open loan must have a user ID").Err()
	}
	return loan, nil
}

func (d draft) text(key string) string {
	s, _ := d[key].(string)
	return s
}

// instant reads a date that the schema has checked, in UTC; zero for none.
func (d draft) instant(key string) time.Time {
	t, _ := jsonschema.ParseTime(d.text(key))
	return t.UTC()
}

func (d draft) status() string {
	object, _ := d["status"].(map[string]any)
	return draft(object).text("name")
}

func (d draft) isOpen() bool { return d.status() == openStatus }

// encode returns the loan as storage takes it.
func (d draft) encode() (json.RawMessage, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("writing the loan: %w", err)
	}
	return raw, nil
}

// checkServicePoints refuses service points that do not exist.
func (s *Service) checkServicePoints(ctx context.Context, d draft) error {
	for _, place := range []struct{ key, message string }{
		{"checkinServicePointId", "Check In Service Point does not exist"}, {"checkoutServicePointId", "Check Out Service Point does not exist"},
	} {
		id := d.text(place.key)
		if id == "" {
			continue
		}
		_, exists, err := fault.Found(s.Library.ServicePoint(ctx, id))
		if err != nil {
			return err
		}
		if !exists {
			return fault.Validation(fault.Refusal("", place.message, fault.Param(place.key, id)))
		}
	}
	return nil
}

// checkProxy refuses a proxy who may not borrow for the patron.
func (s *Service) checkProxy(ctx context.Context, d draft) error {
	proxyID := d.text("proxyUserId")
	if proxyID == "" {
		return nil
	}
	relations, err := s.Library.ProxyRelations(ctx, d.text("userId"), proxyID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(relations, func(r library.ProxyRelation) bool { return r.IsActive(s.Now()) }) {
		return nil
	}
	return fault.Validation(fault.Refusal(library.CodeProxyInvalid, "proxyUserId is not valid", fault.Param("proxyUserId", proxyID)))
}
