package checkin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// slip has the service points, and Carl, who waits for the book.
func (d *backend) slip() library.Slip {
	slip := library.Slip{
		ServicePoints: []library.ServicePoint{{ID: homeID, Name: "Home"}, {ID: branchID, Name: "Branch"}},
		Requester:     library.User{ID: librarytest.CarlID, Barcode: "carl"},
	}
	if d.shelf == "" {
		return slip
	}
	point := library.ServicePoint{ID: librarytest.DeskID, Name: "Desk"}
	if err := json.Unmarshal([]byte(d.shelf), &point.HoldShelf); err != nil {
		panic(err)
	}
	slip.ServicePoints = append(slip.ServicePoints, point)
	return slip
}

// taken is what a check-in makes of the item and of the request that it fills. Until is the end of
// the hold shelf.
type taken struct {
	item, request, requestStatus string
	servicePoint, until          string
}

func TestCheckIn_FillsTheFirstRequest(t *testing.T) {
	t.Parallel()
	const days = `{"duration":3,"intervalId":"Days"}`
	first := func(change func(*schemas.QueuedRequest)) []schemas.QueuedRequest {
		r := schemas.QueuedRequest{
			ID: "r1", RequesterID: librarytest.CarlID, ItemID: librarytest.BookItemID, InstanceID: "i", RequestType: "Hold",
			RequestLevel: "Item",
			Status:       schemas.RequestNotYetFilled, Position: 1, FulfillmentPreference: "Hold Shelf",
			PickupServicePointID: librarytest.DeskID,
		}
		if change != nil {
			change(&r)
		}
		return []schemas.QueuedRequest{r}
	}
	const title = "Title"
	tests := map[string]struct {
		titles bool
		queue  []schemas.QueuedRequest
		shelf  string
		want   taken
	}{
		"no request": {queue: nil, want: taken{item: "Available"}},
		"fetched here": {
			queue: first(nil), shelf: days, want: taken{
				item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2000-01-04T23:59:59.000Z",
			},
		},
		"upper case is here": {
			queue: first(func(r *schemas.QueuedRequest) { r.PickupServicePointID = strings.ToUpper(librarytest.DeskID) }),
			shelf: days, want: taken{
				item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2000-01-04T23:59:59.000Z",
			},
		},
		"for hours": {
			queue: first(nil), shelf: `{"duration":5,"intervalId":"Hours"}`,
			want: taken{
				item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2000-01-01T05:00:00.000Z",
			},
		},
		"without an end": {
			queue: first(nil), shelf: "null",
			want: taken{item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup"},
		},
		"the desk is gone": {
			queue: first(nil), want: taken{item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup"},
		},
		"fetched elsewhere": {
			queue: first(func(r *schemas.QueuedRequest) { r.PickupServicePointID = branchID }),
			want:  taken{item: "In transit", request: "r1", requestStatus: "Open - In transit", servicePoint: branchID},
		},
		"fetched elsewhere by now, off the shelf": {
			queue: first(func(r *schemas.QueuedRequest) {
				r.Status, r.HoldShelfExpirationDate = schemas.RequestAwaitingPickup, "2026-01-01"
				r.PickupServicePointID = branchID
			}),
			want: taken{item: "In transit", request: "r1", requestStatus: "Open - In transit", servicePoint: branchID},
		},
		"brought": {
			queue: first(func(r *schemas.QueuedRequest) { r.FulfillmentPreference = "Delivery"; r.PickupServicePointID = "" }),
			want:  taken{item: "Awaiting delivery", request: "r1", requestStatus: "Open - Awaiting delivery"},
		},
		"waits already": {queue: first(func(r *schemas.QueuedRequest) {
			r.Status, r.HoldShelfExpirationDate = schemas.RequestAwaitingPickup, "2026-01-01"
		}), shelf: days, want: taken{
			item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2026-01-01",
		}},
		"title level off": {
			queue: first(func(r *schemas.QueuedRequest) { r.RequestLevel, r.ItemID = title, "" }),
			want:  taken{item: "Available"},
		},
		"title level on": {
			titles: true, queue: first(func(r *schemas.QueuedRequest) { r.RequestLevel, r.ItemID = title, "" }), shelf: days,
			want: taken{
				item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2000-01-04T23:59:59.000Z",
			},
		},
		"a recalled copy": {titles: true, queue: first(func(r *schemas.QueuedRequest) {
			r.RequestLevel, r.RequestType, r.ItemID = title, "Recall", librarytest.OtherID
		}), shelf: days, want: taken{
			item: "Awaiting pickup", request: "r1", requestStatus: "Open - Awaiting pickup", until: "2000-01-04T23:59:59.000Z",
		}},
		"another copy's turn": {
			titles: true, queue: first(func(r *schemas.QueuedRequest) { r.ItemID = librarytest.OtherID }),
			want: taken{item: "Available"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // whose clock begins with the year 2000
				d := newBackend()
				d.Titles, d.Queue, d.shelf, d.loan = tt.titles, tt.queue, tt.shelf, nil
				d.Book.Status.Name = "Available"
				in, err := d.checkIn(t, newReturn())
				if err != nil {
					t.Fatal(err)
				}
				c := d.checkIns[0]
				got := taken{
					item: c.ItemStatus, request: c.RequestID, requestStatus: c.RequestStatus,
					servicePoint: c.InTransitDestinationServicePointID, until: c.HoldShelfExpirationDate,
				}
				if got != tt.want || c.TitleLevel != tt.titles {
					t.Errorf("got  %+v, title level %t\nwant %+v, %t", got, c.TitleLevel, tt.want, tt.titles)
				}
				if in.Destination.ID != c.InTransitDestinationServicePointID {
					t.Errorf("answered the destination %+v", in.Destination)
				}
				if got := in.Request != nil && in.Request.ID == c.RequestID &&
					in.Request.HoldShelfExpirationDate == c.HoldShelfExpirationDate; got != (c.RequestID != "") {
					t.Errorf("answered the request %+v", in.Request)
				}
				if in.Slip.Requester.ID != librarytest.CarlID {
					t.Errorf("answered the slip %+v", in.Slip)
				}
				if inQueue := len(tt.queue) > 0 && (tt.titles || tt.queue[0].RequestLevel != title); in.InHouseUse == inQueue {
					t.Errorf("in-house use is %t", in.InHouseUse)
				}
			})
		})
	}
}

func TestCheckIn_NeedsAPickupPoint(t *testing.T) {
	t.Parallel()
	d := newBackend()
	d.Queue = []schemas.QueuedRequest{
		{ID: "r1", ItemID: librarytest.BookItemID, RequestLevel: "Item", Status: schemas.RequestNotYetFilled, Position: 1},
	}
	_, err := d.checkIn(t, newReturn())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "missing a pickup service point") ||
		len(d.checkIns) != 0 {
		t.Errorf("got %v after %d commits, want it refused", err, len(d.checkIns))
	}
}

func TestCheckIn_JudgesAChangedQueueOnce(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.RequestChanged, "changed")
	for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.RequestChanged} {
		d := newBackend()
		d.shelf = "null"
		late := schemas.QueuedRequest{
			ID: "late", ItemID: librarytest.BookItemID, RequestLevel: "Item", Status: schemas.RequestNotYetFilled, Position: 1,
			PickupServicePointID: librarytest.DeskID,
		}
		d.onCheckIn = func() { d.Queue = []schemas.QueuedRequest{late} }
		for range refusals {
			d.answers = append(d.answers, changed)
		}
		_, err := d.checkIn(t, newReturn())
		if fault.CodeOf(err) != wanted || len(d.checkIns) != 2 || d.checkIns[0].RequestID != "" ||
			d.checkIns[1].RequestID != "late" {
			t.Errorf("changed %d times: got %v, committed %+v; want %q after 2 commits", refusals, err, d.checkIns, wanted)
		}
	}
}

func TestCheckIn_HasItsSession(t *testing.T) {
	t.Parallel()
	d, req := newBackend(), newReturn()
	req.SessionID, req.FillNoRequest = librarytest.OtherID, true // no request waits
	if _, err := d.checkIn(t, req); err != nil || d.checkIns[0].SessionID != librarytest.OtherID {
		t.Errorf("got %+v, %v", d.checkIns, err)
	}
	req.SessionID = "mine"
	if _, err := d.checkIn(t, req); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "sessionId must be a UUID") {
		t.Errorf("a session that is no id: got %v", err)
	}
}
