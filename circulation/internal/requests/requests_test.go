package requests_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
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
		"empty dates are none": {
			change:  nil,
			replace: map[string]any{"requestExpirationDate": "", "holdShelfExpirationDate": "", "ours": ""},
			want:    `{` + common + date + ofBook + `,"requestType":"Hold","requestLevel":"Item","ours":""}`, version: 4,
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

// Storage knows a repeat by the id of the commit, which is not that of the request.
func TestCreate_HasAnIDForEachCommit(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	l.answers = []error{fault.New(fault.Unavailable, "no answer"), fault.New(fault.ItemChanged, "changed")}
	if _, err := l.create(t, nil); err != nil || len(l.placed) != 3 {
		t.Fatalf("got %v after %d placements", err, len(l.placed))
	}
	first, repeat, next := l.placed[0].ID, l.placed[1].ID, l.placed[2].ID
	if first != repeat || first == next || uuid.Validate(first) != nil || first == wishID {
		t.Errorf("got the ids %q, %q, %q", first, repeat, next)
	}
	l.answers = []error{fault.New(fault.Unavailable, "no answer"), fault.New(fault.NotFound, "Not found")}
	if _, err := l.create(t, nil); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "deleted since") {
		t.Errorf("deleted before the repeat: got %v", err)
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
