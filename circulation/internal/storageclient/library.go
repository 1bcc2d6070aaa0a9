package storageclient

import (
	"context"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/policy"
)

// The collections that check-outs read (FOLIO's paths and keys).
var (
	users           = collection{path: "/users", key: "users"}
	groups          = collection{path: "/groups", key: "usergroups"}
	items           = collection{path: "/item-storage/items", key: "items"}
	holdings        = collection{path: "/holdings-storage/holdings", key: "holdingsRecords"}
	instances       = collection{path: "/instance-storage/instances", key: "instances"}
	locations       = collection{path: "/locations", key: "locations"}
	materialTypes   = collection{path: "/material-types", key: "mtypes"}
	servicePoints   = collection{path: "/service-points", key: "servicepoints"}
	loanPolicies    = collection{path: "/loan-policy-storage/loan-policies", key: "loanPolicies"}
	requestPolicies = collection{path: "/request-policy-storage/request-policies", key: "requestPolicies"}
	schedules       = collection{path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules", key: "fixedDueDateSchedules"}
	loans           = collection{path: "/loan-storage/loans", key: "loans"}
)

// UserByBarcode implements checkout.Library.
func (c *Client) UserByBarcode(ctx context.Context, barcode string) (checkout.User, error) {
	return findRecord[checkout.User](ctx, c, users, equals("barcode", barcode))
}

// User returns a patron. Fault: NotFound.
func (c *Client) User(ctx context.Context, id string) (checkout.User, error) {
	return readRecord[checkout.User](ctx, c, users, id)
}

// ItemByBarcode implements checkout.Library.
func (c *Client) ItemByBarcode(ctx context.Context, barcode string) (checkout.Item, error) {
	return findRecord[checkout.Item](ctx, c, items, equals("barcode", barcode))
}

// Item implements checkout.Library.
func (c *Client) Item(ctx context.Context, id string) (checkout.Item, error) {
	return readRecord[checkout.Item](ctx, c, items, id)
}

// Holdings implements checkout.Library.
func (c *Client) Holdings(ctx context.Context, id string) (checkout.Holdings, error) {
	return readRecord[checkout.Holdings](ctx, c, holdings, id)
}

// Instance implements checkout.Library.
func (c *Client) Instance(ctx context.Context, id string) (checkout.Instance, error) {
	return readRecord[checkout.Instance](ctx, c, instances, id)
}

// Location implements checkout.Library.
func (c *Client) Location(ctx context.Context, id string) (checkout.Location, error) {
	return keepRecord(ctx, c, locations, id, parseRecord[checkout.Location])
}

// MaterialType implements checkout.Library.
func (c *Client) MaterialType(ctx context.Context, id string) (checkout.Named, error) {
	return keepRecord(ctx, c, materialTypes, id, parseRecord[checkout.Named])
}

// ServicePoint implements checkout.Library.
func (c *Client) ServicePoint(ctx context.Context, id string) (checkout.Named, error) {
	return keepRecord(ctx, c, servicePoints, id, parseRecord[checkout.Named])
}

// PickupPoint implements checkout.ReturnLibrary.
func (c *Client) PickupPoint(ctx context.Context, id string) (checkout.PickupPoint, error) {
	return readRecord[checkout.PickupPoint](ctx, c, servicePoints, id)
}

// Group implements checkout.Library.
func (c *Client) Group(ctx context.Context, id string) (checkout.Group, error) {
	return keepRecord(ctx, c, groups, id, parseRecord[checkout.Group])
}

// LoanPolicy implements checkout.Library.
func (c *Client) LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error) {
	return keepRecord(ctx, c, loanPolicies, id, policy.ParseLoanPolicy)
}

// RenewalPolicy implements checkout.Renewer. It reads the policy on each call: the cache
// keeps what check-outs need of the same records.
func (c *Client) RenewalPolicy(ctx context.Context, id string) (policy.RenewalPolicy, error) {
	return fetchRecord(ctx, c, loanPolicies, id, policy.ParseRenewalPolicy)
}

// FixedSchedule implements checkout.Library.
func (c *Client) FixedSchedule(ctx context.Context, id string) (policy.FixedSchedule, error) {
	return keepRecord(ctx, c, schedules, id, policy.ParseFixedSchedule)
}

// Users returns those of the patrons that exist, in any order.
func (c *Client) Users(ctx context.Context, ids []string) ([]checkout.User, error) {
	return listByID[checkout.User](ctx, c, users, ids)
}

// Items returns those of the items that exist, in any order.
func (c *Client) Items(ctx context.Context, ids []string) ([]checkout.Item, error) {
	return listByID[checkout.Item](ctx, c, items, ids)
}

// HoldingsRecords returns those of the holdings that exist, in any order.
func (c *Client) HoldingsRecords(ctx context.Context, ids []string) ([]checkout.Holdings, error) {
	return listByID[checkout.Holdings](ctx, c, holdings, ids)
}

// Instances returns those of the instances that exist, in any order.
func (c *Client) Instances(ctx context.Context, ids []string) ([]checkout.Instance, error) {
	return listByID[checkout.Instance](ctx, c, instances, ids)
}

// LoanPolicies returns the ids of those of the policies that exist.
func (c *Client) LoanPolicies(ctx context.Context, ids []string) ([]string, error) {
	return c.listExisting(ctx, loanPolicies, ids)
}

// RequestPolicies returns the ids of those of the policies that exist.
func (c *Client) RequestPolicies(ctx context.Context, ids []string) ([]string, error) {
	return c.listExisting(ctx, requestPolicies, ids)
}

func (c *Client) listExisting(ctx context.Context, from collection, ids []string) ([]string, error) {
	found, err := listByID[checkout.Named](ctx, c, from, ids)
	existing := make([]string, len(found))
	for i, p := range found {
		existing[i] = p.ID
	}
	return existing, err
}
