package requests_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// newMovable is a library with a hold of Ann for another copy of the book's title.
func newMovable() *fakeLibrary {
	l := newStored()
	l.stored = strings.Replace(l.stored, bookID, otherID, 1)
	return l
}

func TestMove(t *testing.T) {
	t.Parallel()
	replace := func(old, replacement string) func(*fakeLibrary) {
		return func(l *fakeLibrary) { l.stored = strings.Replace(l.stored, old, replacement, 1) }
	}
	own := schemas.QueuedRequest{
		ID: wishID, RequesterID: annID, ItemID: otherID, InstanceID: titleID, RequestType: "Page", RequestLevel: "Title",
		Status: schemas.RequestNotYetFilled, Position: 1,
	}
	second := schemas.QueuedRequest{
		ID: otherID, RequesterID: annID, ItemID: bookID, InstanceID: titleID, RequestType: "Hold", RequestLevel: "Item",
		Status: schemas.RequestNotYetFilled, Position: 1,
	}
	tests := map[string]struct {
		change func(*fakeLibrary)
		move   requests.MoveRequest
		code   fault.Code
		says   string
		kind   string // of the request that is sent
	}{
		"hold on a lent book": {move: requests.MoveRequest{DestinationItemID: bookID}, kind: "Hold"},
		"now a recall":        {move: requests.MoveRequest{DestinationItemID: bookID, RequestType: "Recall"}, kind: "Recall"},
		"page of a free book": {
			change: func(l *fakeLibrary) { l.Book.Status.Name, l.loan = "Available", "" },
			move:   requests.MoveRequest{DestinationItemID: bookID}, kind: "Page",
		},
		"of a patron who is neither active nor inactive": {
			change: func(l *fakeLibrary) { l.Patron.Active = nil },
			move:   requests.MoveRequest{DestinationItemID: bookID}, kind: "Hold",
		},
		"of an inactive patron": {
			change: func(l *fakeLibrary) { l.Patron.Active = new(bool) },
			move:   requests.MoveRequest{DestinationItemID: bookID}, kind: "Hold",
		},
		"of an expired patron": {
			change: func(l *fakeLibrary) { l.Patron.ExpirationDate = library.Instant{Time: time.Unix(0, 0)} },
			move:   requests.MoveRequest{DestinationItemID: bookID}, kind: "Hold",
		},
		"of a patron without a group": {
			change: func(l *fakeLibrary) { l.Patron.PatronGroup = "" },
			move:   requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "A valid patron group is required",
		},
		"page of a title": {change: func(l *fakeLibrary) {
			l.Titles, l.Queue = true, []schemas.QueuedRequest{own}
			l.Book.Status.Name, l.loan = "Available", ""
			replace(`"Hold","requestLevel":"Item"`, `"Page","requestLevel":"Title"`)(l)
		}, move: requests.MoveRequest{DestinationItemID: bookID}, kind: "Page"},
		"no destination": {code: fault.Invalid, says: "destinationItemId must be a UUID"},
		"no type": {
			move: requests.MoveRequest{DestinationItemID: bookID, RequestType: "Steal"}, code: fault.Invalid,
			says: "requestType must be one of",
		},
		"unknown item": {
			move: requests.MoveRequest{DestinationItemID: deskID}, code: fault.Invalid, says: "Item does not exist",
		},
		"item of another title": {
			change: func(l *fakeLibrary) { l.of = otherID }, move: requests.MoveRequest{DestinationItemID: bookID},
			code: fault.Invalid, says: "Request can only be moved to an item with the same instance ID",
		},
		"closed": {
			change: replace("Open - Not yet filled", "Closed - Cancelled"),
			move:   requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "The Request has already been closed",
		},
		"title while off": {
			change: replace(`"requestLevel":"Item"`, `"requestLevel":"Title"`),
			move:   requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "Can not process TLR - TLR feature is disabled",
		},
		"hold of a title": {
			change: func(l *fakeLibrary) { l.Titles = true; replace(`"requestLevel":"Item"`, `"requestLevel":"Title"`)(l) },
			move:   requests.MoveRequest{DestinationItemID: bookID, RequestType: "Recall"}, code: fault.Invalid,
			says: "Not allowed to move from/to Hold TLR",
		},
		"requested already": {
			change: func(l *fakeLibrary) { l.Queue = []schemas.QueuedRequest{second} },
			move:   requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "already has an open request for this item",
		},
		"to its own item": {
			change: func(l *fakeLibrary) {
				l.stored = newStored().stored
				s := second
				s.ID = wishID
				l.Queue = []schemas.QueuedRequest{s}
			}, move: requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "already has an open request for this item",
		},
		"title to its own item": {
			change: func(l *fakeLibrary) {
				l.Titles, l.stored = true, newStored().stored
				replace(`"Hold","requestLevel":"Item"`, `"Recall","requestLevel":"Title"`)(l)
				s := own
				s.ItemID = bookID
				l.Queue = []schemas.QueuedRequest{s}
			}, move: requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "Not allowed to move title level page request to the same item",
		},
		"has the book": {
			change: func(l *fakeLibrary) { l.lendToAnn() }, move: requests.MoveRequest{DestinationItemID: bookID},
			code: fault.Invalid, says: "already has this item on loan",
		},
		"not allowed by policy": {
			change: func(l *fakeLibrary) { l.allowed = `{"id":"p","requestTypes":["Page"]}` },
			move:   requests.MoveRequest{DestinationItemID: bookID}, code: fault.Invalid,
			says: "Hold requests are not allowed for this patron and item combination",
		},
		"page of a lent book": {
			move: requests.MoveRequest{DestinationItemID: bookID, RequestType: "Page"}, code: fault.Invalid,
			says: "Page requests are not allowed",
		},
		"no request": {
			change: func(l *fakeLibrary) { l.stored = "" }, move: requests.MoveRequest{DestinationItemID: bookID},
			code: fault.NotFound, says: "There is no request",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, l := &fakeKeeper{}, newMovable()
			if tt.change != nil {
				tt.change(l)
			}
			_, err := k.service(l).Move(t.Context(), wishID, tt.move)
			if fault.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %q saying %q", err, tt.code, tt.says)
			}
			if (err == nil) != (len(k.moves) == 1) {
				t.Fatalf("sent %d moves", len(k.moves))
			}
			if err != nil {
				return
			}
			var sent map[string]any
			if err := json.Unmarshal(k.moves[0].Request, &sent); err != nil {
				t.Fatal(err)
			}
			m := k.moves[0]
			item, _ := sent["item"].(map[string]any)
			searched, _ := sent["searchIndex"].(map[string]any)
			if item["barcode"] != "book" || item["itemEffectiveLocationName"] != "Main" ||
				searched["shelvingOrder"] != "QA 11 x" || searched["pickupServicePointName"] != "Main desk" {
				t.Errorf("sent the copies %v, %v, want those of the new item", item, searched)
			}
			if sent["itemId"] != bookID || sent["requestType"] != tt.kind || m.FromItemID != otherID || m.ItemVersion == nil ||
				m.TitleLevel != l.Titles {
				t.Errorf("sent %s, %+v", m.Request, m)
			}
			if recalls := m.Recall != nil; recalls != (tt.kind == "Recall") {
				t.Errorf("recalls the loan: %t", recalls)
			}
		})
	}
}

func TestMove_HasAnIDForEachCommit(t *testing.T) {
	t.Parallel()
	k := &fakeKeeper{answers: []error{fault.New(fault.Unavailable, "no answer"), fault.New(fault.ItemChanged, "changed")}}
	if _, err := k.service(newMovable()).Move(t.Context(), wishID,
		requests.MoveRequest{DestinationItemID: bookID}); err != nil || len(k.moves) != 3 {
		t.Fatalf("got %v after %d moves", err, len(k.moves))
	}
	first, repeat, next := k.moves[0].ID, k.moves[1].ID, k.moves[2].ID
	if first != repeat || first == next || uuid.Validate(first) != nil || first == wishID {
		t.Errorf("got the ids %q, %q, %q", first, repeat, next)
	}
}

func TestMove_ReadsAChangedItemOnce(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.ItemChanged, "changed")
	for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.ItemChanged} {
		k := &fakeKeeper{answers: []error{changed, changed}[:refusals]}
		if _, err := k.service(newMovable()).Move(t.Context(), wishID,
			requests.MoveRequest{DestinationItemID: bookID}); fault.CodeOf(err) != wanted || len(k.moves) != 2 {
			t.Errorf("%d refusals: got %v after %d moves", refusals, err, len(k.moves))
		}
	}
}
