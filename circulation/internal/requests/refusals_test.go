package requests_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	inactive := false
	tests := map[string]struct {
		change  func(*fakeLibrary)
		replace map[string]any
		want    []string // message|code|key=value
	}{
		"level unknown": {
			replace: map[string]any{"requestLevel": "Shelf"},
			want: []string{
				`Request level must be one of the following: "Item"|REQUEST_LEVEL_IS_NOT_ALLOWED|requestLevel=Shelf`,
			},
		},
		"titles off": {
			replace: forTitle("Hold"),
			want: []string{
				`Request level must be one of the following: "Item"|REQUEST_LEVEL_IS_NOT_ALLOWED|requestLevel=Title`,
			},
		},
		"no level, titles on": {
			change: func(l *fakeLibrary) { l.Titles = true }, replace: map[string]any{"requestLevel": nil},
			want: []string{
				`Request level must be one of the following: "Item", "Title"|REQUEST_LEVEL_IS_NOT_ALLOWED|requestLevel=null`,
			},
		},
		"no instance id": {
			replace: map[string]any{"instanceId": nil},
			want:    []string{"Cannot create a request with no instance ID|PROPERTY_MISSING|instanceId=null"},
		},
		"no item id": {
			replace: map[string]any{"itemId": nil},
			want:    []string{"Cannot create an item level request with no item ID|PROPERTY_MISSING|itemId=null"},
		},
		"no instance id, no item id": {replace: map[string]any{"instanceId": nil, "itemId": nil}, want: []string{
			"Cannot create a request with no instance ID|PROPERTY_MISSING|instanceId=null",
			"Cannot create an item level request with no item ID|PROPERTY_MISSING|itemId=null",
		}},
		"no preference": {
			replace: map[string]any{"fulfillmentPreference": nil},
			want: []string{
				"Fulfillment preference must be one of the following: Hold Shelf, " +
					"Delivery|FULFILLMENT_PREFERENCE_IS_NOT_ALLOWED|fulfillmentPreference=null",
			},
		},
		"unknown preference": {
			replace: map[string]any{"fulfillmentPreference": "Drone"},
			want: []string{
				"Fulfillment preference must be one of the following: Hold Shelf, " +
					"Delivery|FULFILLMENT_PREFERENCE_IS_NOT_ALLOWED|fulfillmentPreference=Drone",
			},
		},
		"blocks that are none": {replace: map[string]any{
			"requestProcessingParameters": map[string]any{"overrideBlocks": 7},
		}, want: []string{
			"requestProcessingParameters.overrideBlocks must be of type object, not " +
				"number|type|requestProcessingParameters.overrideBlocks=7",
		}},
		"proxy for oneself": {
			replace: map[string]any{"proxyUserId": strings.ToUpper(annID)},
			want: []string{
				"User cannot be proxy for themselves|USER_CANNOT_BE_PROXY_FOR_THEMSELVES|proxyUserId=" + strings.ToUpper(annID),
			},
		},
		"no proxy of hers": {
			replace: map[string]any{"proxyUserId": benID},
			want:    []string{"proxyUserId is not valid|PROXY_RELATIONSHIP_INVALID|proxyUserId=" + benID},
		},
		"an ended proxy": {change: func(l *fakeLibrary) {
			l.proxyRelations = []library.ProxyRelation{
				{Status: "Inactive"}, {Status: "Active", ExpirationDate: library.Instant{Time: time.Unix(0, 0)}},
			}
		}, replace: map[string]any{"proxyUserId": benID}, want: []string{
			"proxyUserId is not valid|PROXY_RELATIONSHIP_INVALID|proxyUserId=" + benID,
		}},
		"title with an item": {
			change: func(l *fakeLibrary) { l.Titles = true }, replace: map[string]any{"requestLevel": "Title"},
			want: []string{
				"Cannot create a title level page request for this instance ID with no item " +
					"ID|CANNOT_CREATE_PAGE_TLR_WITHOUT_ITEM_ID|itemId=" + bookID,
			},
		},
		"requested already": {change: func(l *fakeLibrary) {
			l.Queue = []schemas.QueuedRequest{librarytest.NewRequest("r", annID, "Hold", "Item", "Open - Not yet filled", 1)}
		}, want: []string{
			"This requester already has an open request for this item|ITEM_ALREADY_REQUESTED|requesterId=" + annID,
		}},
		"no requester id": {
			replace: map[string]any{"requesterId": nil}, want: []string{"requesterId is required|required|requesterId=null"},
		},
		"item id is none": {
			replace: map[string]any{"itemId": "book"},
			want:    []string{"itemId must be a UUID, such as 0bab56e5-1ab6-4ac2-afdf-8b2df0434378|format|itemId=book"},
		},
		"no patron": {
			replace: map[string]any{"requesterId": otherID},
			want:    []string{"A valid user and patron group are required. User is null|USER_NOT_FOUND|userId=" + otherID},
		},
		"patron of no group": {
			change: func(l *fakeLibrary) { l.Patron.PatronGroup = "" },
			want: []string{
				"A valid patron group is required. PatronGroup ID is null|USER_HAS_NO_PATRON_GROUP|PatronGroupId=null",
			},
		},
		"patron who is neither active nor inactive": {
			change: func(l *fakeLibrary) { l.Patron.Active = nil },
			want:   []string{"Inactive users cannot make requests|USER_IS_INACTIVE_OR_EXPIRED|requesterId=" + annID},
		},
		"inactive patron": {
			change: func(l *fakeLibrary) { l.Patron.Active = &inactive },
			want:   []string{"Inactive users cannot make requests|USER_IS_INACTIVE_OR_EXPIRED|requesterId=" + annID},
		},
		"expired patron": {
			change: func(l *fakeLibrary) { l.Patron.ExpirationDate = library.Instant{Time: time.Unix(0, 0)} },
			want:   []string{"Inactive users cannot make requests|USER_IS_INACTIVE_OR_EXPIRED|requesterId=" + annID},
		},
		"no such instance": {
			replace: map[string]any{"instanceId": otherID},
			want:    []string{"Instance does not exist|INSTANCE_NOT_FOUND|instanceId=" + otherID},
		},
		"no such item": {
			replace: map[string]any{"itemId": otherID}, want: []string{"Item does not exist|ITEM_NOT_FOUND|itemId=" + otherID},
		},
		"item of another": {
			change: func(l *fakeLibrary) { l.of = otherID },
			want:   []string{"The item is not one of the instance|ITEM_OF_ANOTHER_INSTANCE|itemId=" + bookID},
		},
		"has the item": {
			change: func(l *fakeLibrary) { l.lendToAnn() },
			want: []string{
				"This requester already has this item on loan|REQUESTER_ALREADY_HAS_THIS_ITEM_ON_LOAN|itemId=" + bookID,
			},
		},
		"hold of a free item": {
			change: func(l *fakeLibrary) { l.Book.Status.Name = "Available" }, want: []string{notAllowed("Hold")},
		},
		"page of a lent item": {replace: map[string]any{"requestType": "Page"}, want: []string{notAllowed("Page")}},
		"recall of a missing": {
			change: func(l *fakeLibrary) { l.Book.Status.Name = "Missing" }, replace: map[string]any{"requestType": "Recall"},
			want: []string{notAllowed("Recall")},
		},
		"page, nothing free": {
			change: func(l *fakeLibrary) { l.Titles = true }, replace: forTitle("Page"),
			want: []string{
				"Cannot create page TLR for this instance ID - no available items found|NO_AVAILABLE_ITEM|instanceId=" + titleID,
			},
		},
		"nowhere to fetch it": {
			replace: map[string]any{"pickupServicePointId": nil},
			want: []string{
				"Hold shelf fulfillment requests require a Pickup service " +
					"point|HOLD_SHELF_REQUESTS_REQUIRE_PICKUP_SERVICE_POINT|id=" + wishID,
			},
		},
		"no such desk": {
			replace: map[string]any{"pickupServicePointId": otherID},
			want:    []string{"Pickup service point does not exist|SERVICE_POINT_NOT_FOUND|pickupServicePointId=" + otherID},
		},
		"a desk for staff": {
			change: func(l *fakeLibrary) { l.pickup = false },
			want: []string{
				"Service point is not a pickup location|SERVICE_POINT_IS_NOT_PICKUP_LOCATION|pickupServicePointId=" + deskID,
			},
		},
		"everything at once": {
			change:  func(l *fakeLibrary) { l.lendToAnn(); l.pickup, l.Patron.PatronGroup = false, "" },
			replace: nil,
			want: []string{
				"Service point is not a pickup location|SERVICE_POINT_IS_NOT_PICKUP_LOCATION|pickupServicePointId=" + deskID,
				"A valid patron group is required. PatronGroup ID is null|USER_HAS_NO_PATRON_GROUP|PatronGroupId=null",
				"This requester already has this item on loan|REQUESTER_ALREADY_HAS_THIS_ITEM_ON_LOAN|itemId=" + bookID,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary()
			if tt.change != nil {
				tt.change(l)
			}
			_, err := l.create(t, tt.replace)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid {
				t.Fatalf("got %v, want it refused", err)
			}
			var got []string
			for _, d := range f.Details {
				shown := "null"
				if d.Parameters[0].Value != nil {
					shown = *d.Parameters[0].Value
				}
				got = append(got, d.Message+"|"+d.Code+"|"+d.Parameters[0].Key+"="+shown)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if len(l.placed) != 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestCreate_RefusesAStatusThatIsNone(t *testing.T) {
	t.Parallel()
	for _, status := range []any{"Open", "", 7, []string{"Open - Not yet filled"}} {
		l := newLibrary()
		_, err := l.create(t, map[string]any{"status": status})
		if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), `"Open - Not yet filled"`) ||
			len(l.placed) != 0 {
			t.Errorf("%v: got %v, placed %d", status, err, len(l.placed))
		}
	}
	for _, status := range schemas.RequestStatuses() {
		l := newLibrary()
		if _, err := l.create(t, map[string]any{"status": status}); err != nil ||
			!strings.Contains(string(l.placed[0].Request), `"Open - Not yet filled"`) {
			t.Errorf("%s: got %v", status, err)
		}
	}
}

func TestCreate_OfABodyThatIsNoRequest(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	for _, doc := range []string{"[]", "7", `{"a":`, "null"} {
		_, err := l.service().Create(t.Context(), []byte(doc))
		if !fault.Is(err, fault.Malformed) {
			t.Errorf("%s: got %v, want %s", doc, err, fault.Malformed)
		}
	}
}
