package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// collection is where records of one type are.
type collection struct {
	path, key string
	settles   bool // see request
}

// The collections that check-outs read (FOLIO's paths and keys).
var (
	users         = collection{path: "/users", key: "users"}
	groups        = collection{path: "/groups", key: "usergroups"}
	items         = collection{path: "/item-storage/items", key: "items"}
	holdings      = collection{path: "/holdings-storage/holdings", key: "holdingsRecords"}
	instances     = collection{path: "/instance-storage/instances", key: "instances"}
	locations     = collection{path: "/locations", key: "locations"}
	materialTypes = collection{path: "/material-types", key: "mtypes"}
	servicePoints = collection{path: "/service-points", key: "servicepoints"}
	loanPolicies  = collection{path: "/loan-policy-storage/loan-policies", key: "loanPolicies"}
	schedules     = collection{path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules", key: "fixedDueDateSchedules"}
	loans         = collection{path: "/loan-storage/loans", key: "loans"}
	checkOuts     = collection{path: "/loan-storage/check-outs", settles: true} // ours
)

// UserByBarcode implements checkout.Library.
func (c *Client) UserByBarcode(ctx context.Context, barcode string) (checkout.User, error) {
	return first[checkout.User](ctx, c, users, equals("barcode", barcode))
}

// ItemByBarcode implements checkout.Library.
func (c *Client) ItemByBarcode(ctx context.Context, barcode string) (checkout.Item, error) {
	return first[checkout.Item](ctx, c, items, equals("barcode", barcode))
}

// Item implements checkout.Library.
func (c *Client) Item(ctx context.Context, id string) (checkout.Item, error) {
	return one[checkout.Item](ctx, c, items, id)
}

// Holdings implements checkout.Library.
func (c *Client) Holdings(ctx context.Context, id string) (checkout.Holdings, error) {
	return one[checkout.Holdings](ctx, c, holdings, id)
}

// Instance implements checkout.Library.
func (c *Client) Instance(ctx context.Context, id string) (checkout.Instance, error) {
	return one[checkout.Instance](ctx, c, instances, id)
}

// Location implements checkout.Library.
func (c *Client) Location(ctx context.Context, id string) (checkout.Location, error) {
	return kept(ctx, c, locations, id, parse[checkout.Location])
}

// MaterialType implements checkout.Library.
func (c *Client) MaterialType(ctx context.Context, id string) (checkout.Named, error) {
	return kept(ctx, c, materialTypes, id, parse[checkout.Named])
}

// ServicePoint implements checkout.Library.
func (c *Client) ServicePoint(ctx context.Context, id string) (checkout.Named, error) {
	return kept(ctx, c, servicePoints, id, parse[checkout.Named])
}

// Group implements checkout.Library.
func (c *Client) Group(ctx context.Context, id string) (checkout.Group, error) {
	return kept(ctx, c, groups, id, parse[checkout.Group])
}

// LoanPolicy implements checkout.Library.
func (c *Client) LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error) {
	return kept(ctx, c, loanPolicies, id, policy.ParseLoanPolicy)
}

// FixedSchedule implements checkout.Library.
func (c *Client) FixedSchedule(ctx context.Context, id string) (policy.FixedSchedule, error) {
	return kept(ctx, c, schedules, id, policy.ParseFixedSchedule)
}

// HasOpenLoan implements checkout.Library.
func (c *Client) HasOpenLoan(ctx context.Context, itemID string) (bool, error) {
	found, err := list[json.RawMessage](ctx, c, loans, equals("status.name", "Open")+" and "+equals("itemId", itemID), 1)
	return len(found) > 0, err
}

// OpenLoans implements checkout.Library.
func (c *Client) OpenLoans(ctx context.Context, count checkout.LoanCount) (int, error) {
	query := url.Values{"userId": {count.UserID}}
	for name, id := range map[string]string{
		"materialTypeId": count.MaterialTypeID, "loanTypeId": count.LoanTypeID, "lockId": count.LockID,
	} {
		if id != "" {
			query.Set(name, id)
		}
	}
	r := get("/loan-storage/open-loan-count", query)
	r.settles = true // the second count of a check-out is made while it holds the lock
	body, err := c.do(ctx, r)
	if err != nil {
		return 0, fmt.Errorf("counting the patron's open loans: %w", err)
	}
	// An answer without a count must not pass for a count of none.
	var answer struct{ Count *int }
	if err := decode(r, body, &answer); err != nil {
		return 0, err
	}
	if answer.Count == nil || *answer.Count < 0 {
		return 0, unreadable(r, errors.New("it has no count"))
	}
	return *answer.Count, nil
}

func keyFor(ctx context.Context, path string) (cacheKey, error) {
	id, err := okapi.TenantFrom(ctx)
	return cacheKey{tenant: id.String(), path: path}, err
}

// first returns the one record that matches query. None is NotFound.
func first[T any](ctx context.Context, c *Client, from collection, query string) (T, error) {
	var none T
	found, err := list[T](ctx, c, from, query, 1)
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, fault.New(fault.NotFound, "No record in %s matches", from.path)
	}
	return found[0], nil
}

// list returns at most limit records that match query.
func list[T any](ctx context.Context, c *Client, from collection, query string, limit int) ([]T, error) {
	r := get(from.path, url.Values{"query": {query}, "limit": {strconv.Itoa(limit)}})
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	var envelope map[string]json.RawMessage
	if err := decode(r, body, &envelope); err != nil {
		return nil, err
	}
	raw, ok := envelope[from.key]
	if !ok {
		return nil, unreadable(r, fmt.Errorf("it has no %s", from.key))
	}
	var records []T
	err = decode(r, raw, &records)
	return records, err
}

// one returns a record by id. Rules and records may name it with anything: what
// is no UUID is the id of no record.
func one[T any](ctx context.Context, c *Client, from collection, id string) (T, error) {
	return fetch(ctx, c, from, id, parse[T])
}

// kept is one for reference records: those change rarely and are kept for a
// second.
func kept[T any](ctx context.Context, c *Client, from collection, id string, parse func([]byte) (T, error)) (T, error) {
	var none T
	key, err := keyFor(ctx, from.path+"/"+id)
	if err != nil {
		return none, err
	}
	value, err := c.cache.get(ctx, key, func(ctx context.Context, _ any) (any, error) {
		return fetch(ctx, c, from, id, parse)
	})
	if err != nil {
		return none, err
	}
	return value.(T), nil // a path holds records of one type
}

func fetch[T any](ctx context.Context, c *Client, from collection, id string, parse func([]byte) (T, error)) (T, error) {
	var none T
	if !schemas.IsUUID(id) {
		return none, fault.New(fault.NotFound, "No record in %s has the id %q", from.path, id)
	}
	r := getRecord(from.path, id)
	r.settles = from.settles
	body, err := c.do(ctx, r)
	if err != nil {
		return none, err
	}
	record, err := parse(body)
	if err != nil {
		return none, unreadable(r, err)
	}
	return record, nil
}

func parse[T any](body []byte) (T, error) {
	var record T
	err := json.Unmarshal(body, &record)
	return record, err
}
