package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// PickupPoint implements checkout.ReturnLibrary.
func (c *Client) PickupPoint(ctx context.Context, id string) (checkout.PickupPoint, error) {
	return one[checkout.PickupPoint](ctx, c, servicePoints, id)
}

// User returns a patron. Fault: NotFound.
func (c *Client) User(ctx context.Context, id string) (checkout.User, error) {
	return one[checkout.User](ctx, c, users, id)
}

// Borrows implements requests.Library.
func (c *Client) Borrows(ctx context.Context, userID, itemID string) (bool, error) {
	query := equals("status.name", "Open") + " and " + equals("itemId", itemID) + " and " + equals("userId", userID)
	found, err := list[json.RawMessage](ctx, c, loans, query, 1)
	return len(found) > 0, err
}

// FreeCopy implements requests.Library.
func (c *Client) FreeCopy(ctx context.Context, instanceID string) (checkout.Item, error) {
	shelves, err := list[checkout.Holdings](ctx, c, holdings, equals("instanceId", instanceID), maxQueue)
	if err != nil {
		return checkout.Item{}, err
	}
	for some := range slices.Chunk(shelves, batch) {
		ids := make([]string, len(some))
		for i, h := range some {
			ids[i] = h.ID
		}
		item, err := first[checkout.Item](ctx, c, items, equals("status.name", "Available")+" and "+anyOf("holdingsRecordId", ids))
		if !fault.Is(err, fault.NotFound) {
			return item, err
		}
	}
	return checkout.Item{}, fault.New(fault.NotFound, "No copy is available")
}

// Place implements requests.Placer.
func (c *Client) Place(ctx context.Context, p schemas.Placement) (schemas.PlacedRequest, error) {
	const path = "/request-storage/placements"
	r := request{method: http.MethodPost, route: path, path: path, want: http.StatusCreated, body: p}
	var placed schemas.PlacedRequest
	body, err := c.do(ctx, r)
	if err != nil {
		return placed, fmt.Errorf("placing the request: %w", err)
	}
	if err := decode(r, body, &placed); err != nil {
		return placed, err
	}
	if len(placed.Request) == 0 {
		return placed, unreadable(r, errors.New("it has no request"))
	}
	return placed, nil
}

// Request returns a stored request. Fault: NotFound.
func (c *Client) Request(ctx context.Context, id string) (json.RawMessage, error) {
	return one[json.RawMessage](ctx, c, requests, id)
}

// Requests returns a page of the stored requests and how many match the CQL query
// in all; an empty query matches every request. Bad CQL is Malformed and says why.
func (c *Client) Requests(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	values := pageQuery(offset, limit)
	if query != "" {
		values.Set("query", query)
	}
	r := get(requests.path, values)
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, 0, fmt.Errorf("listing requests: %w", err)
	}
	var page struct {
		Requests     []json.RawMessage
		TotalRecords int
	}
	if err := decode(r, body, &page); err != nil {
		return nil, 0, err
	}
	if page.Requests == nil {
		return nil, 0, unreadable(r, errors.New("it has no requests"))
	}
	return page.Requests, page.TotalRecords, nil
}

// ItemQueue returns the open requests that name the item, in the order of their
// positions.
func (c *Client) ItemQueue(ctx context.Context, itemID string) ([]json.RawMessage, error) {
	return openRequests[json.RawMessage](ctx, c, equals("itemId", itemID))
}

// TitleQueue returns the open requests for the instance and its items, in the
// order of their positions.
func (c *Client) TitleQueue(ctx context.Context, instanceID string) ([]json.RawMessage, error) {
	return openRequests[json.RawMessage](ctx, c, equals("instanceId", instanceID))
}
