package commit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// change parses a change of request a by its patron, with some properties replaced.
func change(t *testing.T, more string, replace map[string]any) commit.RequestChange {
	t.Helper()
	request := map[string]any{
		"id": wishID("a"), "requesterId": patronID, "instanceId": instanceID, "itemId": itemID, "holdingsRecordId": deskID,
		"requestType": "Hold", "requestLevel": "Item", "requestDate": "2026-03-04T05:06:00Z",
		"fulfillmentPreference": "Hold Shelf",
		"pickupServicePointId":  deskID, "status": "Open - Not yet filled", "name": "a",
	}
	maps.Copy(request, replace)
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	c, err := commit.ParseRequestChange(fmt.Appendf(nil, `{"request":%s%s}`, raw, more))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inTitle is the request of a patron for the instance of the tests, with other properties.
func inTitle(more string) string {
	return fmt.Sprintf(`{"requesterId":%q,"instanceId":%q%s}`, patronID, instanceID, more)
}

func TestRequestChange_Decide(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	const (
		deletes = `,"delete":true`
		titles  = `,"titleLevelRequests":true`
	)
	three := []queued{
		{name: "a", of: of, position: 1, requires: inTitle("")},
		{name: "b", of: of, position: 2, requires: inTitle("")},
		{name: "c", of: of, position: 3, requires: inTitle("")},
	}
	mixed := []queued{
		{name: "a", of: of, position: 1, requires: inTitle("")},
		{name: "b", of: otherCopy, position: 2, requires: inTitle("")},
		{name: "c", of: unassigned, position: 3, requires: inTitle("," + title)},
	}
	stored := func(more string) string {
		return inTitle(fmt.Sprintf(`,"holdingsRecordId":%[1]q,"pickupServicePointId":%[1]q,
			"requestDate":"2026-03-04T05:06:00Z","item":{"barcode":"b"},
			"requestType":"Hold","requestLevel":"Item","fulfillmentPreference":"Hold Shelf",
			"metadata":{"createdDate":"2026-03-04T05:06:00Z"},`, deskID) + more)
	}
	cancelled := map[string]any{"status": "Closed - Cancelled"}
	tests := map[string]struct {
		more    string
		replace map[string]any
		queue   []queued
		item    string // its status
		code    fault.Code
		says    string
		writes  string
		freed   bool
		turned  bool // requests for titles were turned on or off
	}{
		"edit": {
			replace: map[string]any{"patronComments": "x"}, queue: three, item: "Paged", writes: "a 1 Open - Not yet filled",
		},
		"edit with an old status": {
			replace: map[string]any{"patronComments": "x"},
			queue:   []queued{{name: "a", of: of, position: 1, requires: inTitle("," + waiting)}}, item: "Awaiting pickup",
			writes: "a 1 Open - Awaiting pickup",
		},
		"cancel, others wait": {
			replace: cancelled, queue: three, item: "Paged",
			writes: "a <nil> Closed - Cancelled, b 1 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"cancel the only page": {
			replace: cancelled, queue: three[:1], item: "Paged", writes: "a <nil> Closed - Cancelled", freed: true,
		},
		"cancel, lent": {
			replace: cancelled, queue: three[:1], item: "Checked out", writes: "a <nil> Closed - Cancelled",
		},
		"cancel, on the shelf": {
			replace: cancelled, queue: []queued{{name: "a", of: of, position: 1, requires: inTitle("," + waiting)}},
			item: "Awaiting pickup", writes: "a <nil> Closed - Cancelled",
		},
		"cancel in a title": {
			more: titles, replace: cancelled, queue: mixed, item: "Paged",
			writes: "a <nil> Closed - Cancelled, b 1 Open - Not yet filled, c 2 Open - Not yet filled", freed: true,
		},
		"cancel in a title, item requested": {
			more: titles, replace: cancelled, queue: append(mixed[:2:2], queued{"c", of, 3, inTitle("")}), item: "Paged",
			writes: "a <nil> Closed - Cancelled, b 1 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"unfilled": {
			replace: map[string]any{"status": "Closed - Unfilled"}, queue: three[:1], item: "Checked out",
			writes: "a <nil> Closed - Unfilled",
		},
		"delete": {
			more: deletes, queue: three, item: "Paged", writes: "b 1 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"delete the only page": {more: deletes, queue: three[:1], item: "Paged", writes: "", freed: true},
		"delete a closed one": {
			more: deletes, queue: []queued{{name: "a", of: of, position: 0, requires: inTitle(`,"status":"Closed - Filled"`)}},
			item: "Paged", writes: "",
		},
		"closed before": {
			replace: cancelled,
			queue:   []queued{{name: "a", of: of, position: 0, requires: inTitle(`,"status":"Closed - Filled"`)}},
			code:    fault.Invalid, says: "The Request has already been closed",
		},
		"cancelled before": {
			replace: map[string]any{
				"status": "Closed - Cancelled", "metadata": map[string]any{"createdDate": "2020-01-01T00:00:00Z"},
			},
			queue: []queued{{name: "a", of: of, position: 0, requires: stored(`"status":"Closed - Cancelled"`)}}, writes: "",
		},
		"cancelled before by others": {
			replace: cancelled,
			queue: []queued{
				{
					name: "a", of: of, position: 0,
					requires: stored(`"status":"Closed - Cancelled","cancelledByUserId":"` + deskID.String() + `"`),
				},
			},
			code: fault.Invalid, says: "already been closed",
		},
		"moved before": {
			replace: cancelled, queue: []queued{{name: "a", of: otherCopy, position: 1, requires: inTitle("")}},
			code: fault.RequestChanged, says: "another item",
		},
		"another title before": {
			replace: cancelled,
			queue:   []queued{{name: "a", of: of, position: 1, requires: fmt.Sprintf(`{"instanceId":%q}`, otherCopy)}},
			code:    fault.RequestChanged, says: "another item",
		},
		"gone": {replace: cancelled, code: fault.NotFound, says: "There is no request"},
		"seen in the queue of the title": {
			more: titles, replace: cancelled, queue: three, turned: true, code: fault.RequestChanged, says: "turned on or off",
		},
		"delete one without a title": {
			more: titles + deletes, replace: map[string]any{"instanceId": nil}, turned: true,
			queue:  []queued{{name: "a", of: of, position: 1, requires: `{}`}, {name: "b", of: of, position: 2, requires: `{}`}},
			writes: "b 1 Open - Not yet filled",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := change(t, tt.more, tt.replace)
			seen := commit.Seen{TitlesOn: c.TitleLevel != tt.turned, Queue: queue(t, tt.queue...)}
			if tt.item != "" {
				seen.Item = storedItem(t, tt.item)
			}
			got := wantMade(t, c, seen, "a", madeOf{code: tt.code, says: tt.says, writes: tt.writes, items: becomes(tt.freed)})
			if updated := tt.writes != "" && !c.Delete; len(got.Events) == 1 != updated {
				t.Errorf("%d events, want one of an update: %t", len(got.Events), updated)
			}
		})
	}
	opened := commit.Seen{Request: queue(t, three...)[0], Queue: queue(t, three[1:]...)} // after the queue was locked
	if _, err := change(t, "", cancelled).Decide(ctx(t), opened); !fault.Is(err, fault.RequestChanged) {
		t.Errorf("a request that is not locked: got %v, want %s", err, fault.RequestChanged)
	}
}

// An edit replaces the copies of what it changes, and no others.
func TestRequestChange_ReplacesCopies(t *testing.T) {
	t.Parallel()
	stored := queue(t, queued{"a", itemID.String(), 1, inTitle(fmt.Sprintf(`,"proxyUserId":%q,"proxy":{"barcode":"old"},
		"pickupServicePointId":%q,
		"searchIndex":{"shelvingOrder":"s","pickupServicePointName":"old"}`, otherID, deskID))})
	sent := map[string]any{
		"proxy":       map[string]any{"barcode": "new"},
		"searchIndex": map[string]any{"pickupServicePointName": "new", "shelvingOrder": "forged"},
	}
	for name, tt := range map[string]struct {
		replace map[string]any
		want    string
	}{
		"nothing":       {map[string]any{"proxyUserId": otherID}, "old s old"},
		"another proxy": {map[string]any{"proxyUserId": patronID}, "new s old"},
		"another place": {map[string]any{"proxyUserId": otherID, "pickupServicePointId": otherCopy}, "old s new"},
		"no proxy":      {map[string]any{"proxy": nil}, " s old"},
	} {
		maps.Copy(tt.replace, map[string]any{"searchIndex": sent["searchIndex"]})
		if _, none := tt.replace["proxy"]; none {
			delete(tt.replace, "proxy")
		} else {
			tt.replace["proxy"] = sent["proxy"]
		}
		got, err := change(t, "", tt.replace).Decide(ctx(t), commit.Seen{Request: stored[0], Queue: stored, Now: now})
		if err != nil || len(got.Requests) != 1 {
			t.Fatalf("%s: got %+v, %v", name, got, err)
		}
		r := got.Requests[0]
		if copies := r.Text("proxy.barcode") + " " + r.Text("searchIndex.shelvingOrder") + " " +
			r.Text("searchIndex.pickupServicePointName"); copies != tt.want {
			t.Errorf("%s: got %q, want %q", name, copies, tt.want)
		}
	}
}

// An edit was made from what the client read, so the rest is as it is stored now.
func TestRequestChange_KeepsWhatOthersDecide(t *testing.T) {
	t.Parallel()
	stored := queue(t, queued{"a", itemID.String(), 4, inTitle(`,"status":"Open - Awaiting pickup","requestType":"Page",
		"patronComments":"old",
		"item":{"barcode":"b"},"requester":{"barcode":"r"},"holdShelfExpirationDate":"2026-04-01T00:00:00Z"`)})
	edit := func(replace map[string]any) records.Record {
		t.Helper()
		got, err := change(t, "", replace).Decide(ctx(t), commit.Seen{Request: stored[0], Queue: stored, Now: now})
		if err != nil || len(got.Requests) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		return got.Requests[0]
	}
	got := edit(map[string]any{
		"status": "Open - In transit", "requestType": "Recall", "requesterId": otherID, "position": 9,
		"item":      map[string]any{"barcode": "forged"},
		"requester": map[string]any{}, "pickupServicePointId": otherCopy, "vendorField": 1,
	})
	wantJSON(t, "request", got, fmt.Sprintf(`{"id":%q,"requesterId":%q,"instanceId":%q,"itemId":%q,"holdingsRecordId":%q,
		"requestType":"Page",
		"requestLevel":"Item","requestDate":"2026-03-04T05:06:00Z","fulfillmentPreference":"Hold Shelf",
		"pickupServicePointId":%q,
		"status":"Open - Awaiting pickup","position":4,"name":"a","item":{"barcode":"b"},"requester":{"barcode":"r"},
		"vendorField":1,
		"holdShelfExpirationDate":"2026-04-01T00:00:00Z",
		"metadata":{"createdDate":%[7]q,"createdByUserId":%[8]q,"updatedDate":%[7]q,"updatedByUserId":%[8]q}}`,
		wishID("a"), patronID, instanceID, itemID, deskID, otherCopy, "2026-03-04T05:06:07.089+00:00", staffID))
	if until := edit(map[string]any{
		"holdShelfExpirationDate": "2026-05-01T00:00:00Z",
	}).Text("holdShelfExpirationDate"); until != "2026-05-01T00:00:00Z" {
		t.Errorf("the shelf expires at %s", until)
	}
	// The item left the shelf after the client read the request.
	stored = queue(t, queued{"a", itemID.String(), 4, inTitle(`,"status":"Open - In transit"`)})
	if left := edit(map[string]any{
		"status": "Open - Awaiting pickup", "holdShelfExpirationDate": "2026-04-01T00:00:00Z",
	}); left["holdShelfExpirationDate"] != nil || left.Text("status") != "Open - In transit" {
		t.Errorf("a request whose item is on its way has the end of the hold shelf: %v", left)
	}
}
