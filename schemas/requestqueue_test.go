package schemas_test

import (
	"testing"

	"checkoutlock/schemas"
)

func TestFirstFilledBy(t *testing.T) {
	t.Parallel()
	const item, title = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000001"
	request := func(id, level, kind, status, itemID string, position int) schemas.QueuedRequest {
		return schemas.QueuedRequest{
			ID: id, RequestLevel: level, RequestType: kind, Status: status, ItemID: itemID, InstanceID: title, Position: position,
		}
	}
	const open, waits = schemas.RequestNotYetFilled, schemas.RequestAwaitingPickup
	other := request("o", "Title", "Hold", open, "", 1)
	other.InstanceID = "another"
	tests := map[string]struct {
		queue      []schemas.QueuedRequest
		titleLevel bool
		want       string
	}{
		"an empty queue":                         {nil, true, ""},
		"the lowest position, in whatever order": {[]schemas.QueuedRequest{request("b", "Item", "Hold", open, item, 2), request("a", "Item", "Page", open, item, 1)}, false, "a"},
		"one without position comes last":        {[]schemas.QueuedRequest{request("b", "Item", "Hold", open, item, 0), request("a", "Item", "Page", open, item, 7)}, false, "a"},
		"an id in capitals":                      {[]schemas.QueuedRequest{request("a", "Item", "Hold", waits, "AAAAAAAA-0000-4000-8000-000000000001", 1)}, false, "a"},
		"closed ones do not wait":                {[]schemas.QueuedRequest{request("a", "Item", "Hold", "Closed - Filled", item, 1)}, false, ""},
		"one for another item":                   {[]schemas.QueuedRequest{request("a", "Item", "Hold", open, "x", 1)}, true, ""},
		"one for the title, switched off":        {[]schemas.QueuedRequest{request("a", "Title", "Hold", open, item, 1)}, false, ""},
		"one for the title":                      {[]schemas.QueuedRequest{request("a", "Title", "Hold", open, "", 1)}, true, "a"},
		"one for another title":                  {[]schemas.QueuedRequest{other}, true, ""},
		"a page of another item of the title":    {[]schemas.QueuedRequest{request("a", "Title", "Page", open, "x", 1), request("b", "Item", "Hold", open, item, 2)}, true, "b"},
		"a page of the title's very item":        {[]schemas.QueuedRequest{request("a", "Title", "Page", open, item, 1)}, true, "a"},
		"a recall takes another item":            {[]schemas.QueuedRequest{request("a", "Title", "Recall", open, "x", 1)}, true, "a"},
		"a recall of any item":                   {[]schemas.QueuedRequest{request("a", "Title", "Recall", open, "", 1)}, true, "a"},
		"a recall of this item":                  {[]schemas.QueuedRequest{request("a", "Title", "Recall", open, item, 1)}, true, "a"},
		"unless one is set aside for it":         {[]schemas.QueuedRequest{request("a", "Title", "Recall", waits, "x", 1)}, true, ""},
		"a hold for which another is set aside":  {[]schemas.QueuedRequest{request("a", "Title", "Hold", waits, "x", 1)}, true, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := schemas.FirstFilledBy(tt.queue, item, title, tt.titleLevel)
			if got.ID != tt.want || found != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got.ID, found, tt.want)
			}
			if name == "a recall takes another item" {
				tt.want = "" // only when that comes back
			}
			if got, _ := schemas.FirstLentTo(tt.queue, item, title, tt.titleLevel); got.ID != tt.want {
				t.Errorf("a check-out: got %q, want %q", got.ID, tt.want)
			}
		})
	}
}
