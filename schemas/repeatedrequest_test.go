package schemas_test

import (
	"testing"

	"checkoutlock/schemas"
)

func TestQueuedRequest_RefuseRepeated(t *testing.T) {
	t.Parallel()
	const (
		itemTwice  = "ITEM_ALREADY_REQUESTED"
		titleTwice = "INSTANCE_ALREADY_REQUESTED"
		copyFirst  = "ITEM_OF_THIS_INSTANCE_ALREADY_REQUESTED"
	)
	forItem := func(patron, item string) schemas.QueuedRequest {
		return schemas.QueuedRequest{
			ID: "first", RequesterID: patron, ItemID: item, InstanceID: "title", RequestLevel: "Item",
			Status: schemas.RequestNotYetFilled,
		}
	}
	forTitle := func(patron, item string) schemas.QueuedRequest {
		r := forItem(patron, item)
		r.RequestLevel = "Title"
		return r
	}
	closed := forItem("ann", "copy")
	closed.Status = "Closed - Cancelled"
	for _, tt := range []struct {
		name       string
		wish       schemas.QueuedRequest
		queued     schemas.QueuedRequest
		titleLevel bool
		code       string // "" is not refused
	}{
		{name: "same item", wish: forItem("ann", "copy"), queued: forItem("ann", "copy"), code: itemTwice},
		{name: "same item, ids in capitals", wish: forItem("ANN", "COPY"), queued: forItem("ann", "copy"), code: itemTwice},
		{
			name: "same item, title level", wish: forItem("ann", "copy"), queued: forItem("ann", "copy"), titleLevel: true,
			code: itemTwice,
		},
		{name: "another patron", wish: forItem("ann", "copy"), queued: forItem("ben", "copy")},
		{name: "closed", wish: forItem("ann", "copy"), queued: closed},
		{name: "another copy", wish: forItem("ann", "copy"), queued: forItem("ann", "other"), titleLevel: true},
		{name: "title first", wish: forItem("ann", "copy"), queued: forTitle("ann", ""), titleLevel: true, code: itemTwice},
		{name: "title first, switched off", wish: forItem("ann", "copy"), queued: forTitle("ann", "")},
		{
			name: "paged for the title, switched off", wish: forItem("ann", "copy"), queued: forTitle("ann", "copy"),
			code: itemTwice,
		},
		{name: "title twice", wish: forTitle("ann", ""), queued: forTitle("ann", ""), titleLevel: true, code: titleTwice},
		{name: "title twice, switched off", wish: forTitle("ann", ""), queued: forTitle("ann", "")},
		{
			name: "copy, then title", wish: forTitle("ann", ""), queued: forItem("ann", "copy"), titleLevel: true,
			code: copyFirst,
		},
	} {
		got := tt.wish.RefuseRepeated([]schemas.QueuedRequest{tt.queued}, tt.titleLevel)
		if (len(got) == 0) != (tt.code == "") || len(got) > 0 && got[0].Code != tt.code {
			t.Errorf("%s: got %+v, want %q", tt.name, got, tt.code)
		}
	}
}
