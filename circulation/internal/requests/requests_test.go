package requests_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	annID   = "77477611-ab44-4082-a0d8-42f7acdfde11"
	bookID  = "7212ba6a-8dcf-45a1-be9a-ffaa847c4423"
	shelfID = "2b94c631-fca9-4892-a730-03ee529ffe27"
	titleID = "fcd64ce1-6995-48f0-840e-89ffa2288371"
	otherID = "d9cd0bed-1b49-4b5e-a7bd-064b8d177231"
	deskID  = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f"
	wishID  = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	benID   = "6a1c9b0e-52f1-4a0c-8f58-3d1f0c5b7a11"
	loanID  = "5c8f6e1a-3b0e-4f0c-9d3c-0a1b2c3d4e5f"
)

// body is Ann's hold on the book with some properties replaced; nil takes out.
func body(t *testing.T, replace map[string]any) []byte {
	t.Helper()
	doc := map[string]any{
		"id": wishID, "requesterId": annID, "instanceId": titleID, "itemId": bookID, "requestType": "Hold",
		"requestLevel": "Item",
		"requestDate":  "2026-03-01T10:00:00Z", "fulfillmentPreference": "Hold Shelf", "pickupServicePointId": deskID,
	}
	for key, value := range replace {
		if doc[key] = value; value == nil {
			delete(doc, key)
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func forTitle(requestType string) map[string]any {
	return map[string]any{"requestLevel": "Title", "itemId": nil, "requestType": requestType}
}

func TestCreate_PlacesTheRequest(t *testing.T) {
	t.Parallel()
	const (
		copied = `{"barcode":"book","loanTypeId":"` + shelfID + `","itemEffectiveLocationId":"` + titleID +
			`","itemEffectiveLocationName":"Main"}`
		searched = `,"searchIndex":{"callNumberComponents":{"callNumber":"QA 1","suffix":"x"},"shelvingOrder":"QA 11 x",` +
			`"pickupServicePointName":"Main desk"}`
		common = `"id":"` + wishID + `","requesterId":"` + annID + `","instanceId":"` + titleID +
			`","fulfillmentPreference":"Hold Shelf",
			"pickupServicePointId":"` + deskID + `","status":"Open - Not yet filled",
			"requester":{"firstName":"Ann","lastName":"Reader","barcode":"ann"},
			"instance":{"title":"Moby Dick","identifiers":[{"identifierTypeId":"` + otherID + `","value":"978"}]}`
		date   = `,"requestDate":"2026-03-01T10:00:00Z"`
		ofBook = `,"itemId":"` + bookID + `","holdingsRecordId":"` + shelfID + `","item":` + copied + searched
	)
	free := newLibrary().Book
	free.ID, free.Version, free.Barcode, free.Status.Name = otherID, 7, "copy", "Available"
	free.ShelvingOrder = ""
	tests := map[string]struct {
		change  func(*fakeLibrary)
		replace map[string]any
		want    string
		version int // of the item; 0 is none
	}{
		"hold on a lent book": {
			want: `{` + common + date + ofBook + `,"requestType":"Hold","requestLevel":"Item"}`, version: 4,
		},
		"what belongs to others is not taken over": {
			change: nil,
			replace: map[string]any{
				"status": "Closed - Filled", "position": 1, "metadata": map[string]any{},
				"item":      map[string]any{"barcode": "forged"},
				"requester": 7, "searchIndex": map[string]any{"shelvingOrder": "forged"}, "holdingsRecordId": otherID,
				"future": []any{1.5},
			},
			want: `{` + common + date + ofBook + `,"requestType":"Hold","requestLevel":"Item","future":[1.5]}`, version: 4,
		},
		"now, when no date is given": {
			change:  nil,
			replace: map[string]any{"requestDate": nil},
			want: `{` + common + ofBook +
				`,"requestDate":"2026-03-01T10:00:00.000+00:00","requestType":"Hold","requestLevel":"Item"}`, version: 4,
		},
		"through a proxy": {
			change:  func(l *fakeLibrary) { l.proxyRelations = []library.ProxyRelation{{Status: "Active"}} },
			replace: map[string]any{"proxyUserId": benID, "proxy": "forged"},
			want: `{` + common + date + ofBook + `,"requestType":"Hold","requestLevel":"Item","proxyUserId":"` + benID +
				`","proxy":{"barcode":"ben"}}`, version: 4,
		},
		"hold on any copy": {
			change:  func(l *fakeLibrary) { l.Titles = true },
			replace: forTitle("Hold"),
			want: `{` + common + date + `,"searchIndex":{"pickupServicePointName":"Main desk"},"requestType":"Hold",` +
				`"requestLevel":"Title"}`, version: 0,
		},
		"page of any copy": {
			change:  func(l *fakeLibrary) { l.Titles, l.free = true, &free },
			replace: forTitle("Page"),
			want: `{` + common + date + `,"itemId":"` + otherID + `","holdingsRecordId":"` + shelfID + `","item":` +
				strings.Replace(copied, "book", "copy", 1) + strings.Replace(searched, "QA 11 x", "QA 1", 1) +
				`,"requestType":"Page","requestLevel":"Title"}`, version: 7,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLibrary()
				if tt.change != nil {
					tt.change(l)
				}
				got, err := l.create(t, tt.replace)
				if err != nil {
					t.Fatal(err)
				}
				if canonical(t, got) != canonical(t, []byte(tt.want)) {
					t.Errorf("got  %s\nwant %s", canonical(t, got), canonical(t, []byte(tt.want)))
				}
				p := l.placed[0]
				if p.TitleLevel != l.Titles || (p.ItemVersion == nil) != (tt.version == 0) || p.ItemVersion != nil &&
					*p.ItemVersion != tt.version {
					t.Errorf("got %+v, want version %d, title level %t", p, tt.version, l.Titles)
				}
			})
		})
	}
}

func notAllowed(kind string) string {
	return kind + " requests are not allowed for this patron and item " +
		"combination|REQUEST_NOT_ALLOWED_FOR_PATRON_ITEM_COMBINATION|requestType=" + kind
}

func canonical(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

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
			want:    []string{"Cannot create a request with no instance ID|INVALID|instanceId=null"},
		},
		"no item id": {
			replace: map[string]any{"itemId": nil},
			want:    []string{"Cannot create an item level request with no item ID|INVALID|itemId=null"},
		},
		"no instance id, no item id": {replace: map[string]any{"instanceId": nil, "itemId": nil}, want: []string{
			"Cannot create a request with no instance ID|INVALID|instanceId=null",
			"Cannot create an item level request with no item ID|INVALID|itemId=null",
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
			want:    []string{"proxyUserId is not valid|INVALID|proxyUserId=" + benID},
		},
		"an ended proxy": {change: func(l *fakeLibrary) {
			l.proxyRelations = []library.ProxyRelation{
				{Status: "Inactive"}, {Status: "Active", ExpirationDate: library.Instant{Time: time.Unix(0, 0)}},
			}
		}, replace: map[string]any{"proxyUserId": benID}, want: []string{
			"proxyUserId is not valid|INVALID|proxyUserId=" + benID,
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
			want:    []string{"A valid user and patron group are required. User is null|INVALID|userId=" + otherID},
		},
		"patron of no group": {
			change: func(l *fakeLibrary) { l.Patron.PatronGroup = "" },
			want:   []string{"A valid patron group is required. PatronGroup ID is null|INVALID|PatronGroupId=null"},
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
			want:    []string{"Instance does not exist|INVALID|instanceId=" + otherID},
		},
		"no such item": {
			replace: map[string]any{"itemId": otherID}, want: []string{"Item does not exist|INVALID|itemId=" + otherID},
		},
		"item of another": {
			change: func(l *fakeLibrary) { l.of = otherID },
			want:   []string{"The item is not one of the instance|INVALID|itemId=" + bookID},
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
				"Cannot create page TLR for this instance ID - no available items found|INVALID|instanceId=" + titleID,
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
			want:    []string{"Pickup service point does not exist|INVALID|pickupServicePointId=" + otherID},
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
				"A valid patron group is required. PatronGroup ID is null|INVALID|PatronGroupId=null",
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

// The key request_id is that of the call.
func TestCreate_LogsThePlacedRequest(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	l := newLibrary()
	s := l.service()
	s.Log = slog.New(slog.NewTextHandler(&logged, nil))
	l.answers = []error{fault.New(fault.Unavailable, "no answer")}
	if _, err := s.Create(t.Context(), body(t, nil)); err != nil {
		t.Fatal(err)
	}
	if line := logged.String(); strings.Count(line, "placed_id="+wishID) != 2 || strings.Contains(line, "request_id=") ||
		strings.Contains(line, annID) {
		t.Errorf("logged %s", line)
	}
}

// Clients from before requests for titles name the item alone.
func TestCreate_CompletesARequestForAnItemAlone(t *testing.T) {
	t.Parallel()
	alone := map[string]any{"instanceId": nil, "requestLevel": nil}
	l := newLibrary()
	if _, err := l.create(t, alone); err != nil || len(l.placed) != 1 {
		t.Fatalf("got %v, placed %d", err, len(l.placed))
	}
	var got map[string]any
	if err := json.Unmarshal(l.placed[0].Request, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"instanceId": titleID, "holdingsRecordId": shelfID, "requestLevel": "Item", "itemId": bookID,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %s", key, got[key], want)
		}
	}
	alone["itemId"] = otherID
	var f *fault.Error
	if _, err := l.create(t, alone); !errors.As(err, &f) || f.Code != fault.Invalid ||
		f.Details[0].Message != "Item does not exist" {
		t.Errorf("got %v for an unknown item", err)
	}
	alone["itemId"] = "../users"
	if _, err := l.create(t, alone); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "itemId must be a UUID") {
		t.Errorf("got %v for an item id that is no UUID", err)
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

func TestCreate_ReadsAChangedItemOnce(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.ItemChanged, "changed")
	for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.ItemChanged} {
		l := newLibrary()
		for range refusals {
			l.answers = append(l.answers, changed)
		}
		_, err := l.create(t, map[string]any{"id": nil})
		if fault.CodeOf(err) != wanted || len(l.placed) != 2 {
			t.Fatalf("changed %d times: got %v after %d tries, want %q after 2", refusals, err, len(l.placed), wanted)
		}
		if string(l.placed[0].Request) != string(l.placed[1].Request) ||
			!strings.Contains(string(l.placed[0].Request), `"id":"`) {
			t.Errorf("got %s, then %s, want the same id again", l.placed[0].Request, l.placed[1].Request)
		}
	}
}
