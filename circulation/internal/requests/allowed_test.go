package requests_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas/fault"
)

// spellAllowed returns the answer as types with names of places.
func spellAllowed(allowed map[string][]requests.AllowedPoint) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(allowed)) {
		text := kind
		for _, p := range allowed[kind] {
			text += " " + p.Name
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestAllowedPoints(t *testing.T) {
	t.Parallel()
	lent := requests.AllowedQuestion{Operation: "create", RequesterID: benID, ItemID: bookID}
	title := requests.AllowedQuestion{Operation: "CREATE", PatronGroupID: librarytest.AdultsID, InstanceID: titleID}
	replace := requests.AllowedQuestion{Operation: "replace", RequestID: wishID}
	const everywhere = "Hold Desk Shelf, Page Desk Shelf, Recall Desk Shelf"
	copyOf := func(statuses ...string) func(*fakeLibrary) {
		return func(l *fakeLibrary) {
			for _, status := range statuses {
				item := l.Book
				item.Status.Name = status
				l.copies = append(l.copies, item)
			}
		}
	}
	store := func(replace map[string]any) func(*fakeLibrary) {
		doc := map[string]any{
			"id": wishID, "requesterId": benID, "instanceId": titleID, "itemId": bookID, "requestLevel": "Item",
			"requestType": "Page",
		}
		maps.Copy(doc, replace)
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return func(l *fakeLibrary) { l.stored = string(raw) }
	}
	tests := map[string]struct {
		change func(*fakeLibrary)
		ask    requests.AllowedQuestion
		want   string
	}{
		"a lent item": {ask: lent, want: "Hold Desk Shelf, Recall Desk Shelf"},
		"an item on the shelf": {
			change: func(l *fakeLibrary) { l.Book.Status.Name = "Available" }, ask: lent, want: "Page Desk Shelf",
		},
		"a lost item": {change: func(l *fakeLibrary) { l.Book.Status.Name = "Declared lost" }, ask: lent},
		"one type": {
			change: func(l *fakeLibrary) { l.allowed = `{"id":"p","requestTypes":["Recall","Page"]}` }, ask: lent,
			want: "Recall Desk Shelf",
		},
		"one place of one type": {change: func(l *fakeLibrary) {
			l.allowed = `{"id":"p","requestTypes":["Recall","Hold"],"allowedServicePoints":{"Hold":["` + deskID + `"]}}`
		}, ask: lent, want: "Hold Desk, Recall Desk Shelf"},
		"no such place": {change: func(l *fakeLibrary) {
			l.allowed = `{"id":"p","requestTypes":["Recall","Hold"],"allowedServicePoints":{"Hold":["` + benID + `"]}}`
		}, ask: lent, want: "Recall Desk Shelf"},
		"no pickup locations": {change: func(l *fakeLibrary) { l.pickup = false }, ask: lent},
		"a title":             {change: copyOf("Checked out", "Available", "Available"), ask: title, want: everywhere},
		"a title all lent": {
			change: copyOf("Checked out", "Missing"), ask: title, want: "Hold Desk Shelf, Recall Desk Shelf",
		},
		"a title without items": {change: func(l *fakeLibrary) { l.Titles = true }, ask: title, want: "Hold Desk Shelf"},
		"the same, holds obey":  {change: func(l *fakeLibrary) { l.Titles, l.holdsAskPolicies = true, true }, ask: title},
		"the same, titles off":  {ask: title},
		"an edit":               {change: store(nil), ask: replace, want: everywhere},
		"an edit of a title's": {
			change: func(l *fakeLibrary) { store(map[string]any{"requestLevel": "Title"})(l); copyOf("Available")(l) },
			ask:    replace, want: everywhere,
		},
		"an edit, no items": {
			change: func(l *fakeLibrary) { store(map[string]any{"requestLevel": "Title"})(l); l.Titles = true }, ask: replace,
		},
		"a move": {
			change: store(nil), ask: requests.AllowedQuestion{Operation: "move", RequestID: wishID, ItemID: bookID},
			want: "Hold Desk Shelf, Recall Desk Shelf",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary()
			if tt.change != nil {
				tt.change(l)
			}
			got, err := l.service().AllowedPoints(t.Context(), tt.ask)
			if err != nil || got == nil || spellAllowed(got) != tt.want {
				t.Errorf("got %q (%v), want %q", spellAllowed(got), err, tt.want)
			}
		})
	}
}

func TestAllowedPoints_OfSeveralPolicies(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	l.RulesText = "priority: last-line\nfallback-policy: l x r holds n x o x i x\nm atlas + t " + l.Book.LoanTypeID() +
		" + g " + librarytest.AdultsID + " + s " + l.Book.EffectiveLocationID + ": l x r pages n x o x i x\n"
	l.policies = map[string]string{
		"holds": `{"id":"holds","requestTypes":["Hold"]}`,
		"pages": `{"id":"pages","requestTypes":["Page"],"allowedServicePoints":{"Page":["` + deskID + `"]}}`,
	}
	lent, atlas := l.Book, l.Book
	atlas.MaterialTypeID, atlas.Status.Name = "atlas", "Available"
	l.copies = []library.Item{lent, atlas}
	got, err := l.service().AllowedPoints(t.Context(), requests.AllowedQuestion{
		Operation: "create", RequesterID: benID, InstanceID: titleID,
	})
	if want := "Hold Desk Shelf, Page Desk"; err != nil || spellAllowed(got) != want {
		t.Fatalf("got %q (%v), want %q", spellAllowed(got), err, want)
	}
	const desk = `[{"id":"` + deskID + `","name":"Desk","discoveryDisplayName":"Hall"}]`
	if raw, err := json.Marshal(got["Page"]); err != nil || string(raw) != desk {
		t.Errorf("got %s (%v), want %s", raw, err, desk)
	}
}

func TestAllowedPoints_Refusals(t *testing.T) {
	t.Parallel()
	const combination = "Invalid combination of query parameters. Allowed are operation=create with requesterId or " +
		"patronGroupId and with instanceId or itemId, " +
		"operation=replace with requestId, and operation=move with requestId and itemId."
	tests := map[string]struct {
		ask  requests.AllowedQuestion
		code fault.Code
		says string
	}{
		"nothing": {code: fault.Malformed, says: combination},
		"no operation": {
			ask: requests.AllowedQuestion{RequesterID: benID, ItemID: bookID}, code: fault.Malformed, says: combination,
		},
		"item and title": {
			ask:  requests.AllowedQuestion{Operation: "create", RequesterID: benID, ItemID: bookID, InstanceID: titleID},
			code: fault.Malformed, says: combination,
		},
		"neither": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: benID}, code: fault.Malformed, says: combination,
		},
		"a new one with an id": {
			ask:  requests.AllowedQuestion{Operation: "create", RequesterID: benID, ItemID: bookID, RequestID: wishID},
			code: fault.Malformed, says: combination,
		},
		"an edit by a patron, of a title": {
			ask:  requests.AllowedQuestion{Operation: "replace", RequestID: wishID, RequesterID: benID, InstanceID: titleID},
			code: fault.Malformed, says: combination,
		},
		"no requester": {
			ask: requests.AllowedQuestion{Operation: "create", ItemID: bookID}, code: fault.Malformed, says: combination,
		},
		"a move to nothing": {
			ask: requests.AllowedQuestion{Operation: "move", RequestID: wishID}, code: fault.Malformed, says: combination,
		},
		"an edit of an item": {
			ask: requests.AllowedQuestion{Operation: "replace", RequestID: wishID, ItemID: bookID}, code: fault.Malformed,
			says: combination,
		},
		"no ids": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: "ben", ItemID: "book"}, code: fault.Malformed,
			says: "Requester ID is not a valid UUID: ben. Item ID is not a valid UUID: book.",
		},
		"an unknown patron": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: otherID, ItemID: bookID}, code: fault.Invalid,
			says: "User with ID " + otherID + " was not found",
		},
		"an unknown item": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: benID, ItemID: otherID}, code: fault.Invalid,
			says: "Item with id=" + otherID + " cannot be found",
		},
		"an unknown title": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: benID, InstanceID: otherID}, code: fault.Invalid,
			says: "Instance with ID " + otherID + " was not found",
		},
		"an unknown request": {
			ask: requests.AllowedQuestion{Operation: "replace", RequestID: wishID}, code: fault.Invalid,
			says: "Request with ID " + wishID + " was not found",
		},
		"no policy any more ": {
			ask: requests.AllowedQuestion{Operation: "create", RequesterID: benID, ItemID: bookID}, code: fault.Internal,
			says: "could not be found, please check circulation rules",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary()
			if tt.code == fault.Internal {
				l.allowed = ""
			}
			got, err := l.service().AllowedPoints(t.Context(), tt.ask)
			if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, %v, want %q", got, err, tt.says)
			}
		})
	}
}
