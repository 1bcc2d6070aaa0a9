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
			ID: id, RequestLevel: level, RequestType: kind, Status: status, ItemID: itemID, InstanceID: title,
			Position: position,
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
		"an empty queue": {queue: nil, titleLevel: true, want: ""},
		"the lowest position, in whatever order": {
			queue: []schemas.QueuedRequest{
				request("a", "Item", "Hold", open, item, 2), request("b", "Item", "Page", open, item, 1),
			},
			titleLevel: false, want: "b",
		},
		"one without position comes last": {
			queue: []schemas.QueuedRequest{
				request("a", "Item", "Hold", open, item, 0), request("b", "Item", "Page", open, item, 7),
			},
			titleLevel: false, want: "b",
		},
		"an id in capitals": {
			queue:      []schemas.QueuedRequest{request("a", "Item", "Hold", waits, "AAAAAAAA-0000-4000-8000-000000000001", 1)},
			titleLevel: false, want: "a",
		},
		"closed ones do not wait": {
			queue: []schemas.QueuedRequest{request("a", "Item", "Hold", "Closed - Filled", item, 1)}, titleLevel: false,
			want: "",
		},
		"one for another item": {
			queue: []schemas.QueuedRequest{request("a", "Item", "Hold", open, "x", 1)}, titleLevel: true, want: "",
		},
		"one for the title, switched off": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Hold", open, item, 1)}, titleLevel: false, want: "",
		},
		"one for the title": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Hold", open, "", 1)}, titleLevel: true, want: "a",
		},
		"one for another title": {queue: []schemas.QueuedRequest{other}, titleLevel: true, want: ""},
		"a page of another item of the title": {
			queue: []schemas.QueuedRequest{
				request("a", "Title", "Page", open, "x", 1), request("b", "Item", "Hold", open, item, 2),
			},
			titleLevel: true, want: "b",
		},
		"a page of the title's very item": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Page", open, item, 1)}, titleLevel: true, want: "a",
		},
		"a recall takes another item": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Recall", open, "x", 1)}, titleLevel: true, want: "a",
		},
		"a recall of any item": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Recall", open, "", 1)}, titleLevel: true, want: "a",
		},
		"a recall of this item": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Recall", open, item, 1)}, titleLevel: true, want: "a",
		},
		"unless one is set aside for it": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Recall", waits, "x", 1)}, titleLevel: true, want: "",
		},
		"a hold for which another is set aside": {
			queue: []schemas.QueuedRequest{request("a", "Title", "Hold", waits, "x", 1)}, titleLevel: true, want: "",
		},
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
