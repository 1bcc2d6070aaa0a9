package storageclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var requests = collection{path: "/request-storage/requests", key: "requests"}

// Place implements requests.Placer.
func (c *Client) Place(ctx context.Context, p schemas.Placement) (schemas.PlacedRequest, error) {
	r := send("placing the request", http.MethodPost, "/request-storage/placements", p, http.StatusCreated)
	r.record = true
	placed, err := call(ctx, c, r, "request", func(placed schemas.PlacedRequest) bool { return len(placed.Request) > 0 })
	return placed, c.noteQueueChange(ctx, err)
}

// TitleItems implements requests.Library.
func (c *Client) TitleItems(ctx context.Context, instanceID string) ([]library.Item, error) {
	shelves, err := fetchIDs(ctx, c, holdings, equals("instanceId", instanceID), schemas.MaxQueue)
	if err != nil {
		return nil, err
	}
	var all []library.Item
	for some := range slices.Chunk(shelves, batch) {
		found, err := listRecords[library.Item](ctx, c, items, anyOf("holdingsRecordId", some), schemas.MaxQueue)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// PickupPoints implements requests.Library.
func (c *Client) PickupPoints(ctx context.Context) ([]library.ServicePoint, error) {
	return listRecords[library.ServicePoint](ctx, c, servicePoints, equals("pickupLocation", "true"), schemas.MaxQueue)
}

// Request returns a stored request. Fault: NotFound.
func (c *Client) Request(ctx context.Context, id string) (json.RawMessage, error) {
	return readRecord[json.RawMessage](ctx, c, requests, id)
}

// Requests implements httpapi.Storage.
func (c *Client) Requests(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	return listPage[json.RawMessage](ctx, c, requests, query, offset, limit)
}

// ItemQueue implements httpapi.Storage.
func (c *Client) ItemQueue(ctx context.Context, itemID string) ([]json.RawMessage, error) {
	return c.listQueue(ctx, equals("itemId", itemID))
}

// TitleQueue implements httpapi.Storage.
func (c *Client) TitleQueue(ctx context.Context, instanceID string) ([]json.RawMessage, error) {
	return c.listQueue(ctx, equals("instanceId", instanceID))
}

// listQueue returns the open requests that match the clause, in the order of their positions.
func (c *Client) listQueue(ctx context.Context, clause string) ([]json.RawMessage, error) {
	query := clause + " and " + anyOf("status", schemas.OpenRequestStatuses()) + " sortBy position/sort.ascending"
	queue, err := listRecords[json.RawMessage](ctx, c, requests, query, schemas.MaxQueue)
	if err != nil {
		return nil, fmt.Errorf("reading the queue of requests: %w", err)
	}
	return queue, nil
}

// ChangeRequest implements requests.Keeper.
func (c *Client) ChangeRequest(ctx context.Context, change schemas.RequestChange) error {
	r := send("changing the request", http.MethodPost, "/request-storage/changes", change, http.StatusNoContent)
	r.record = true
	return c.noteQueueChange(ctx, c.run(ctx, r))
}

// noteQueueChange forgets whether there are requests for titles, after storage refused a commit as
// judged by another queue. The error stays as it is.
func (c *Client) noteQueueChange(ctx context.Context, err error) error {
	if key, unnamed := keyOf(ctx, titleLevelPath); unnamed == nil && fault.Is(err, fault.RequestChanged) {
		c.cache.Drop(key)
	}
	return err
}

// DeleteRequests implements httpapi.Storage. It sends an empty query too, which storage refuses.
func (c *Client) DeleteRequests(ctx context.Context, query string) error {
	return c.run(ctx, deleteMatching("deleting requests", requests.path, url.Values{"query": {query}}))
}

// OrderQueue implements requests.Keeper.
func (c *Client) OrderQueue(ctx context.Context, o schemas.QueueOrder) (schemas.OrderedQueue, error) {
	r := send("ordering the queue of requests", http.MethodPost, "/request-storage/queue-orders", o, http.StatusOK)
	r.record = true
	ordered, err := call(ctx, c, r, "requests", func(ordered schemas.OrderedQueue) bool { return len(ordered.Requests) > 0 })
	return ordered, c.noteQueueChange(ctx, err)
}

// MoveRequest implements requests.Keeper.
func (c *Client) MoveRequest(ctx context.Context, m schemas.RequestMove) (schemas.PlacedRequest, error) {
	r := send("moving the request", http.MethodPost, "/request-storage/moves", m, http.StatusOK)
	r.record = true
	moved, err := call(ctx, c, r, "request", func(moved schemas.PlacedRequest) bool { return len(moved.Request) > 0 })
	return moved, c.noteQueueChange(ctx, err)
}

// ExistingRequests implements httpapi.Storage.
func (c *Client) ExistingRequests(ctx context.Context, ids []string) ([]string, error) {
	found, err := listByID[library.Named](ctx, c, requests, ids)
	return idsOf(found), err
}

// AddPrint implements httpapi.Storage.
func (c *Client) AddPrint(ctx context.Context, body json.RawMessage) error {
	return c.run(ctx, send("noting a print", http.MethodPost, "/print-events-storage/print-events-entry", body, http.StatusCreated))
}
