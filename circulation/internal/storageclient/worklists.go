package storageclient

import (
	"context"
	"encoding/json"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas"
)

// The collections that only lists of slips read (FOLIO's paths and keys).
var (
	campuses     = collection{path: "/location-units/campuses", key: "loccamps"}
	institutions = collection{path: "/location-units/institutions", key: "locinsts"}
	loanTypes    = collection{path: "/loan-types", key: "loantypes"}
	addressTypes = collection{path: "/addresstypes", key: "addressTypes"}
)

// perBatch bounds what the ids of a batch match, and the locations of a service point.
const perBatch = 10_000

// LocationsServed implements worklist.Library.
func (c *Client) LocationsServed(ctx context.Context, servicePointID string) ([]library.Location, error) {
	return listRecords[library.Location](ctx, c, locations, equals("primaryServicePoint", servicePointID), perBatch)
}

// UnfilledRequests implements worklist.Library.
func (c *Client) UnfilledRequests(ctx context.Context, requestType string, limit int) ([]schemas.QueuedRequest, error) {
	query := equals("requestType", requestType) + " and " + equals("status", schemas.RequestNotYetFilled) + " sortBy requestDate"
	return listRecords[schemas.QueuedRequest](ctx, c, requests, query, limit)
}

// TitleHoldings implements worklist.Library.
func (c *Client) TitleHoldings(ctx context.Context, instanceIDs []string) ([]library.Holdings, error) {
	return listBatches[library.Holdings](ctx, c, holdings, instanceIDs, perBatch, func(some []string) string { return anyOf("instanceId", some) })
}

// SettingValue implements worklist.Library.
func (c *Client) SettingValue(ctx context.Context, name string) (json.RawMessage, error) {
	return c.findSetting(ctx, equals("name", name))
}

// findSetting returns the value of the first circulation setting that matches query.
func (c *Client) findSetting(ctx context.Context, query string) (json.RawMessage, error) {
	setting, err := findRecord[struct {
		Value json.RawMessage `json:"value"`
	}](ctx, c, circulationSettings, query)
	return setting.Value, err
}

// ItemsInStatus implements worklist.Library.
func (c *Client) ItemsInStatus(ctx context.Context, status string, limit int) ([]library.Item, int, error) {
	return listPage[library.Item](ctx, c, items, equals("status.name", status)+" sortBy barcode", 0, limit)
}

// WaitingForPickup implements worklist.Library.
func (c *Client) WaitingForPickup(ctx context.Context, itemIDs []string) ([]schemas.QueuedRequest, error) {
	return listOfItems[schemas.QueuedRequest](ctx, c, requests, itemIDs, equals("status", schemas.RequestAwaitingPickup))
}

// EndedPickups implements worklist.Library.
func (c *Client) EndedPickups(ctx context.Context, itemIDs []string) ([]json.RawMessage, error) {
	return listOfItems[json.RawMessage](ctx, c, requests, itemIDs, anyOf("status", []string{"Closed - Pickup expired", "Closed - Cancelled"})+
		` and awaitingPickupRequestClosedDate>"" sortBy awaitingPickupRequestClosedDate/sort.descending`)
}

// LoansInTransit implements worklist.Library.
func (c *Client) LoansInTransit(ctx context.Context, itemIDs []string) ([]worklist.TransitLoan, error) {
	return listOfItems[worklist.TransitLoan](ctx, c, loans, itemIDs, equals("itemStatus", library.StatusInTransit)+" sortBy returnDate/sort.descending")
}

// OpenRequests implements worklist.Library.
func (c *Client) OpenRequests(ctx context.Context, itemIDs []string) ([]worklist.TransitRequest, error) {
	return listOfItems[worklist.TransitRequest](ctx, c, requests, itemIDs, anyOf("status", schemas.OpenRequestStatuses())+" sortBy position")
}

// listOfItems returns the records of the items that match the rest of the query, in its order within
// each item.
func listOfItems[T any](ctx context.Context, c *Client, from collection, itemIDs []string, rest string) ([]T, error) {
	return listBatches[T](ctx, c, from, itemIDs, perBatch, func(some []string) string { return anyOf("itemId", some) + " and " + rest })
}
