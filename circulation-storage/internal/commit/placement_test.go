package commit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

var instanceID = uuid.MustParse("8d4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77")

// placement is a valid body with some properties replaced, as in body.
func placement(t *testing.T, replace map[string]any) []byte {
	t.Helper()
	request := map[string]any{
		"id": wishID("new"), "requesterId": patronID, "instanceId": instanceID, "itemId": itemID, "holdingsRecordId": deskID,
		"requestType": "Hold", "requestLevel": "Item", "requestDate": "2026-03-04T05:06:00Z",
		"fulfillmentPreference": "Hold Shelf",
		"pickupServicePointId":  deskID, "status": "Open - Awaiting pickup", "position": 99, "vendorField": []any{1.5},
	}
	doc := map[string]any{"request": request, "itemVersion": 3}
	for path, value := range replace {
		target := doc
		key, inRequest := strings.CutPrefix(path, "request.")
		if inRequest {
			target = request
		}
		if target[key] = value; value == nil {
			delete(target, key)
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// forTitle makes a placement one for any item of the title.
func forTitle(more map[string]any) map[string]any {
	replace := map[string]any{
		"titleLevelRequests": true, "request.requestLevel": "Title", "request.itemId": nil, "request.holdingsRecordId": nil,
		"itemVersion": nil,
	}
	maps.Copy(replace, more)
	return replace
}

func TestParsePlacement_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replace map[string]any
		says    string
	}{
		"no request":               {map[string]any{"request": nil}, "request is required"},
		"no id":                    {map[string]any{"request.id": nil}, "request.id is required"},
		"no requester":             {map[string]any{"request.requesterId": nil}, "request.requesterId is required"},
		"id is none":               {map[string]any{"request.itemId": "x"}, "request.itemId must be a UUID"},
		"no version of the item":   {map[string]any{"itemVersion": nil}, "itemVersion goes with request.itemId"},
		"version of no item":       {forTitle(map[string]any{"itemVersion": 1}), "itemVersion goes with request.itemId"},
		"unknown type":             {map[string]any{"request.requestType": "Steal"}, "request.requestType must be one of"},
		"title without the switch": {map[string]any{"request.requestLevel": "Title"}, "requestLevel must be Item"},
		"NUL":                      {map[string]any{"request.patronComments": "\x00"}, `\u0000`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := commit.ParsePlacement(placement(t, tt.replace))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want Invalid saying %q", err, tt.says)
			}
		})
	}
}

func TestPlacement_Decide(t *testing.T) {
	t.Parallel()
	of, ofInstance := itemID.String(), fmt.Sprintf(`,"instanceId":%q`, instanceID)
	tests := map[string]struct {
		replace map[string]any
		change  func(*commit.Seen)
		queue   []queued
		code    fault.Code
		says    string
		place   int    // position
		item    string // status that is written, "" for none
	}{
		"first": {place: 1},
		"behind all": {
			queue: []queued{
				{name: "b", of: of, position: 7, requires: ""},
				{name: "a", of: of, position: 2, requires: ""},
				{name: "c", of: of, position: 0, requires: ""},
			},
			place: 8,
		},
		"page of a free item": {replace: map[string]any{"request.requestType": "Page"}, place: 1, item: "Paged"},
		"page of another": {
			replace: map[string]any{"request.requestType": "Page"},
			change:  func(s *commit.Seen) { s.Item = storedItem(t, "In transit") }, place: 1,
		},
		"for any copy": {replace: forTitle(nil), change: func(s *commit.Seen) { s.Item = nil }, place: 1},
		"any copy, by oneself": {
			replace: forTitle(nil), queue: []queued{{name: "a", of: of, position: 1, requires: mine(ofInstance)}},
			code: fault.Invalid, says: "one of the instance's items",
		},
		"any copy, twice": {
			replace: forTitle(nil),
			queue:   []queued{{name: "a", of: unassigned, position: 1, requires: mine("," + title + ofInstance)}},
			code:    fault.Invalid, says: "for this instance",
		},
		"this copy, after any": {
			replace: map[string]any{"titleLevelRequests": true},
			queue:   []queued{{name: "a", of: unassigned, position: 1, requires: mine("," + title + ofInstance)}},
			code:    fault.Invalid, says: "for this item",
		},
		"this item, twice": {
			queue: []queued{{name: "a", of: of, position: 1, requires: mine("")}}, code: fault.Invalid, says: "for this item",
		},
		"this and another copy": {
			replace: map[string]any{"titleLevelRequests": true},
			queue:   []queued{{name: "a", of: otherCopy, position: 1, requires: mine("")}}, place: 2,
		},
		"no instance":  {change: func(s *commit.Seen) { s.Instance = false }, code: fault.Invalid, says: "no instance"},
		"no item":      {change: func(s *commit.Seen) { s.Item = nil }, code: fault.Invalid, says: "no item"},
		"item changed": {replace: map[string]any{"itemVersion": 2}, code: fault.ItemChanged, says: "3, not 2"},
		"titles turned on": {
			change: func(s *commit.Seen) { s.TitlesOn = true }, code: fault.RequestChanged, says: "turned on or off",
		},
		"deleted since": {
			change: func(s *commit.Seen) { s.Before = wishID("new") }, code: fault.NotFound, says: "There is no request",
		},
		"another's change": {
			change: func(s *commit.Seen) { s.Before = wishID("b") }, code: fault.Invalid, says: "change of another request",
		},
		"another's id": {
			change: func(s *commit.Seen) { s.Request = queue(t, queued{"new", of, 1, ""})[0] }, code: fault.Invalid,
			says: "that of another request",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := commit.ParsePlacement(placement(t, tt.replace))
			if err != nil {
				t.Fatal(err)
			}
			seen := commit.Seen{
				TitlesOn: p.TitleLevel, Instance: true, Item: storedItem(t, "Available"), Queue: queue(t, tt.queue...), Now: now,
			}
			if tt.change != nil {
				tt.change(&seen)
			}
			got, err := p.Decide(ctx(t), seen)
			if tt.code != "" {
				if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %s saying %q", err, tt.code, tt.says)
				}
				return
			}
			if err != nil || got.Request["position"] != tt.place || (len(got.Items) == 1) != (tt.item != "") {
				t.Fatalf("got %+v, %v, want position %d, item written: %t", got, err, tt.place, tt.item != "")
			}
			if tt.item != "" && (got.Item.Text("status.name") != tt.item || got.Item["_version"] != 4) {
				t.Errorf("got the item %v", got.Item)
			}
		})
	}
}

func TestPlacement_Writes(t *testing.T) {
	t.Parallel()
	const at = "2026-03-04T05:06:07.089+00:00"
	p, err := commit.ParsePlacement(placement(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	seen := commit.Seen{Instance: true, Item: storedItem(t, "Checked out"), Now: now}
	got, err := p.Decide(ctx(t), seen)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "request", got.Request, fmt.Sprintf(`{"id":%q,"requesterId":%q,"instanceId":%q,"itemId":%q,
		"holdingsRecordId":%[5]q,"requestType":"Hold",
		"requestLevel":"Item","requestDate":"2026-03-04T05:06:00Z","fulfillmentPreference":"Hold Shelf",
		"pickupServicePointId":%[5]q,
		"status":"Open - Not yet filled","position":1,"vendorField":[1.5],
		"metadata":{"createdDate":%[6]q,"createdByUserId":%[7]q,"updatedDate":%[6]q,"updatedByUserId":%[7]q}}`,
		wishID("new"), patronID, instanceID, itemID, deskID, at, staffID))

	seen.Request, seen.Queue = got.Request, commit.Queue{got.Request}
	again, err := p.Decide(ctx(t), seen)
	if err != nil || !again.Repeated || again.Request.ID() != wishID("new").String() {
		t.Errorf("the same again: got %+v, %v, want it answered again", again, err)
	}
}
