package requests_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// newTitle is a library with two lent copies of a title: the book, due on the 20th, and another one.
func newTitle() *fakeLibrary {
	l := newLibrary()
	l.Titles = true
	other := l.Book
	other.ID, other.Barcode = otherID, "copy"
	l.copies = []library.Item{l.Book, other}
	l.loans = []library.OpenLoan{
		{ID: loanID, UserID: benID, ItemID: bookID, DueDate: day(20)},
		{ID: otherID, UserID: benID, ItemID: otherID, DueDate: day(25)},
	}
	l.free = nil
	return l
}

func day(n int) library.Instant {
	return library.Instant{Time: time.Date(2026, 3, n, 10, 0, 0, 0, time.UTC)}
}

func TestCreate_ForAnyCopy(t *testing.T) {
	t.Parallel()
	recalled := func(items ...string) func(*fakeLibrary, *fakeKeeper) {
		return func(_ *fakeLibrary, k *fakeKeeper) {
			for _, item := range items {
				k.queue = append(k.queue, json.RawMessage(fmt.Sprintf(`{"id":"x","requestType":"Recall","itemId":%q}`,
					strings.ToUpper(item))))
			}
		}
	}
	available := func(l *fakeLibrary, _ *fakeKeeper) { l.copies[1].Status.Name, l.loans = "Available", l.loans[:1] }
	tests := map[string]struct {
		kind   string
		change func(*fakeLibrary, *fakeKeeper)
		says   string // "" is placed
		item   string // that the placed request names
	}{
		"recall, due first":           {kind: "Recall", item: bookID},
		"recall, recalled before":     {kind: "Recall", change: recalled(bookID), item: otherID},
		"recall, recalled least":      {kind: "Recall", change: recalled(bookID, bookID, otherID), item: otherID},
		"recall, as often, due first": {kind: "Recall", change: recalled(otherID, bookID), item: bookID},
		"recall, without a due date last": {
			kind: "Recall", item: otherID,
			change: func(l *fakeLibrary, _ *fakeKeeper) { l.loans[0].DueDate = library.Instant{} },
		},
		"recall, a hold of one, due first": {
			kind: "Recall", item: bookID, change: func(l *fakeLibrary, k *fakeKeeper) {
				slices.Reverse(l.loans)
				k.queue = append(k.queue, json.RawMessage(`{"id":"x","requestType":"Hold","itemId":"`+bookID+`"}`))
			},
		},
		"recall, none on loan": {
			kind:   "Recall",
			change: func(l *fakeLibrary, _ *fakeKeeper) { l.copies[0].Status.Name, l.loans, l.loan = "On order", nil, "" },
			item:   bookID,
		},
		"recall, status refuses one": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) { l.copies[0].Status.Name = "Declared lost" },
			item: otherID,
		},
		"recall, no copies": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) { l.copies, l.loans = nil, nil },
			says: "Request has no loan or recallable item",
		},
		"recall, missing copies": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) {
				l.copies[0].Status.Name, l.copies[1].Status.Name, l.loans = "Missing", "Withdrawn", nil
			},
			says: "Request has no loan or recallable item",
		},
		"recall, not by policy": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) { l.allowed = `{"id":"p","requestTypes":["Hold"]}` },
			says: "Recall requests are not allowed for this patron and item combination",
		},
		"hold": {kind: "Hold"},
		"hold, no copies": {
			kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) { l.copies, l.loans = nil, nil },
		},
		"hold, policies not asked": {
			kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) { l.allowed = `{"id":"p","requestTypes":["Recall"]}` },
		},
		"hold, not by policy": {kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) {
			l.holdsAskPolicies, l.allowed = true, `{"id":"p","requestTypes":["Recall"]}`
		}, says: "Hold requests are not allowed for this patron and title combination"},
		"hold, no copy to ask a policy for": {kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) {
			l.holdsAskPolicies, l.copies, l.loans = true, nil, nil
		}, says: "Hold requests are not allowed for this patron and title combination"},
		"hold, not at this place": {kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) {
			l.holdsAskPolicies, l.allowed = true, `{"id":"p","requestTypes":["Hold"],"allowedServicePoints":{"Hold":[]}}`
		}, says: "One or more Pickup locations are no longer available"},
		"hold, a copy is available": {
			kind: "Hold", change: available,
			says: "Hold/Recall title level request not allowed: pageable available item found for instance",
		},
		"recall, a copy is available": {
			kind: "Recall", change: available,
			says: "Hold/Recall title level request not allowed: pageable available item found for instance",
		},
		"hold, available, no pages": {
			kind:   "Hold",
			change: func(l *fakeLibrary, k *fakeKeeper) { available(l, k); l.allowed = `{"id":"p","requestTypes":["Hold"]}` },
		},
		"hold, available, no pages, policies asked": {kind: "Hold", change: func(l *fakeLibrary, k *fakeKeeper) {
			available(l, k)
			l.copies = l.copies[1:]
			l.holdsAskPolicies, l.allowed = true, `{"id":"p","requestTypes":["Hold"]}`
		}},
		"page, available, no pages": {
			kind:   "Page",
			change: func(l *fakeLibrary, k *fakeKeeper) { available(l, k); l.allowed = `{"id":"p","requestTypes":["Hold"]}` },
			says:   "Cannot create page TLR for this instance ID - no available items found",
		},
		"hold, the patron has a copy": {
			kind: "Hold", change: func(l *fakeLibrary, _ *fakeKeeper) { l.loans[1].UserID = annID },
			says: "This requester already has a loan for one of the instance's items",
		},
		"recall, the patron has that copy": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) { l.loans[0].UserID = annID },
			says: "This requester already has a loan for one of the instance's items",
		},
		"recall, a patron of no group": {
			kind: "Recall", change: func(l *fakeLibrary, _ *fakeKeeper) { l.Patron.PatronGroup = "" },
			says: "A valid patron group is required. PatronGroup ID is null",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, k := newTitle(), &fakeKeeper{}
			if tt.change != nil {
				tt.change(l, k)
			}
			_, err := k.service(l).Create(t.Context(), body(t, forTitle(tt.kind)))
			if tt.says != "" {
				if details := readDetails(err); !fault.Is(err, fault.Invalid) || len(details) != 1 ||
					details[0].Message != tt.says {
					t.Errorf("got %v, want %q alone", err, tt.says)
				}
				return
			}
			if err != nil || len(l.placed) != 1 {
				t.Fatalf("got %v, placed %d", err, len(l.placed))
			}
			var sent struct{ ItemID string }
			if err := json.Unmarshal(l.placed[0].Request, &sent); err != nil || sent.ItemID != tt.item {
				t.Errorf("placed a request for the copy %q, %v, want %q", sent.ItemID, err, tt.item)
			}
			if recalls := l.placed[0].Recall != nil; recalls != (tt.item == bookID && l.loans != nil) {
				t.Errorf("shortens the loan of the book: %t", recalls)
			}
		})
	}
}
