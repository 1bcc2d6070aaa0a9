package storageclient

import (
	"context"
	"net/http"
	"net/url"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// ChangeRequest implements requests.Keeper.
func (c *Client) ChangeRequest(ctx context.Context, change schemas.RequestChange) error {
	r := send("changing the request", http.MethodPost, "/request-storage/changes", change, http.StatusNoContent)
	r.record = true
	_, err := c.do(ctx, r)
	return c.noteQueueChange(ctx, err)
}

// noteQueueChange forgets whether there are requests for titles, after storage refused a commit as
// judged by another queue. The error stays as it is.
func (c *Client) noteQueueChange(ctx context.Context, err error) error {
	if !fault.Is(err, fault.RequestChanged) {
		return err
	}
	key, unnamed := keyOf(ctx, circulationSettings.path+"?"+titleLevelSetting)
	if unnamed == nil {
		c.cache.Drop(key)
	}
	return err
}

// DeleteRequests implements requests.Keeper. It sends an empty query too, which storage refuses.
func (c *Client) DeleteRequests(ctx context.Context, query string) error {
	_, err := c.do(ctx, deleteMatching("deleting requests", requests.path, url.Values{"query": {query}}))
	return err
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
