package commit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestCheckIn_ServesTheFirstRequest(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	tests := map[string]struct {
		sent   string
		titles bool
		queue  []queued
		says   string
		writes string
	}{
		"first request": {
			sent:   "a",
			queue:  []queued{{name: "a", of: of, position: 1, requires: ""}, {name: "b", of: of, position: 2, requires: ""}},
			writes: "a 1 Open - Awaiting pickup",
		},
		"set aside already": {
			sent: "a", queue: []queued{{name: "a", of: of, position: 1, requires: "{" + waiting + "}"}}, writes: "",
		},
		"requested since": {
			queue: []queued{{name: "a", of: of, position: 1, requires: ""}}, says: "read the queue again",
		},
		"cancelled since": {sent: "a", says: "no longer"},
		"no longer first": {
			sent:  "b",
			queue: []queued{{name: "a", of: of, position: 1, requires: ""}, {name: "b", of: of, position: 2, requires: ""}},
			says:  "no longer",
		},
		"title level off": {queue: []queued{{name: "a", of: unassigned, position: 1, requires: "{" + title + "}"}}},
		"of the title": {
			sent: "a", titles: true, queue: []queued{{name: "a", of: unassigned, position: 1, requires: "{" + title + "}"}},
			writes: "a 1 Open - Awaiting pickup",
		},
		"called back another": {
			sent: "a", titles: true,
			queue:  []queued{{name: "a", of: otherCopy, position: 1, requires: `{"requestType":"Recall",` + title + "}"}},
			writes: "a 1 Open - Awaiting pickup",
		},
		"goes before those not yet": {
			sent: "c", titles: true,
			queue: []queued{
				{name: "a", of: otherCopy, position: 1, requires: "{" + waiting + "}"},
				{name: "b", of: otherCopy, position: 2, requires: ""},
				{name: "c", of: unassigned, position: 3, requires: "{" + title + "}"},
				{name: "d", of: unassigned, position: 4, requires: "{" + title + "}"},
			},
			writes: "b 3 Open - Not yet filled, c 2 Open - Awaiting pickup",
		},
		"stays behind what is set aside": {
			sent: "b", titles: true,
			queue: []queued{
				{name: "a", of: otherCopy, position: 1, requires: "{" + waiting + "}"},
				{name: "b", of: unassigned, position: 2, requires: "{" + title + "}"},
			},
			writes: "b 2 Open - Awaiting pickup",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replace := map[string]any{"titleLevelRequests": tt.titles}
			if tt.sent != "" {
				replace["requestId"], replace["requestStatus"] = wishID(tt.sent), "Open - Awaiting pickup"
				replace["itemStatus"] = "Awaiting pickup"
			}
			c, err := commit.ParseCheckIn(checkInBody(t, replace))
			if err != nil {
				t.Fatal(err)
			}
			seen := commit.Seen{Item: storedItem(t, "Checked out"), Queue: queue(t, tt.queue...), Now: now}
			got, err := c.Decide(ctx(t), seen)
			if tt.says != "" {
				if !fault.Is(err, fault.RequestChanged) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %s saying %q", err, fault.RequestChanged, tt.says)
				}
				return
			}
			if err != nil || written(got.Requests) != tt.writes {
				t.Errorf("got %q, %v, want %q", written(got.Requests), err, tt.writes)
			}
		})
	}
}

// A request for delivery has none, and this one no type either.
func TestCheckIn_LogsNoEmptyPickupServicePoint(t *testing.T) {
	t.Parallel()
	c, err := commit.ParseCheckIn(checkInBody(t, map[string]any{
		"requestId": wishID("a"), "requestStatus": "Open - Awaiting delivery", "itemStatus": "Awaiting delivery",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Decide(ctx(t), commit.Seen{
		Item: storedItem(t, "Checked out"), Queue: queue(t, queued{name: "a", of: itemID.String(), position: 1}), Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "requests", got.Events[0].Payload["requests"], fmt.Sprintf(`[{"id":%q,
		"oldRequestStatus":"Open - Not yet filled","newRequestStatus":"Open - Awaiting delivery"}]`, wishID("a")))
}

// An item without a shelving order is sorted by its call number.
func TestDecide_SortsByTheCallNumber(t *testing.T) {
	t.Parallel()
	item := storedItem(t, "Available")
	item["effectiveCallNumberComponents"] = map[string]any{"callNumber": "QA 1"}
	out, err := commit.ParseCheckOut(body(t, map[string]any{"requestId": wishID("a"), "titleLevelRequests": true}))
	if err != nil {
		t.Fatal(err)
	}
	lent, err := out.Decide(ctx(t), commit.Seen{
		LockUser: patronID, Item: item, Queue: queue(t, queued{"a", unassigned, 1, mine(`,"requestLevel":"Title"`)}),
		Now: now,
	})
	if err != nil || len(lent.Requests) != 1 || lent.Requests[0].Text("searchIndex.shelvingOrder") != "QA 1" {
		t.Errorf("got %v, %v", lent.Requests, err)
	}
}

// A filled or served request names its item, and the user and time of the change.
func TestDecide_WritesChangedRequests(t *testing.T) {
	t.Parallel()
	const at = "2026-03-04T05:06:07.089+00:00"
	metadata := fmt.Sprintf(`"metadata":{"createdDate":%[1]q,"createdByUserId":%[2]q,"updatedDate":%[1]q,`+
		`"updatedByUserId":%[2]q}`, at, staffID)
	item := storedItem(t, "Available")
	item["permanentLoanTypeId"], item["effectiveShelvingOrder"] = "t", "QA 11"
	item["effectiveCallNumberComponents"] = map[string]any{"callNumber": "QA 1"}
	own := queued{
		"a", unassigned, 1,
		mine(`,"item":{"barcode":"old"},"searchIndex":{"shelvingOrder":"old","pickupServicePointName":"Desk"},` +
			`"requestLevel":"Title","holdShelfExpirationDate":"2020-01-01T00:00:00Z","vendor":[1.50]`),
	}
	base := fmt.Sprintf(`"id":%q,"requesterId":%q,"requestLevel":"Title","name":"a","vendor":[1.5],"itemId":%q,
		"holdingsRecordId":%q,%s,
		"item":{"barcode":"1","itemEffectiveLocationId":"e","loanTypeId":"t"},
		"searchIndex":{"callNumberComponents":{"callNumber":"QA 1"},"shelvingOrder":"QA 11","pickupServicePointName":"Desk"}`,
		wishID("a"), patronID, itemID, deskID, metadata)

	out, err := commit.ParseCheckOut(body(t, map[string]any{
		"requestId": wishID("a"), "titleLevelRequests": true, "sessionId": deskID,
	}))
	if err != nil {
		t.Fatal(err)
	}
	lent, err := out.Decide(ctx(t), commit.Seen{LockUser: patronID, Item: item, Queue: queue(t, own), Now: now})
	if err != nil || len(lent.Requests) != 1 {
		t.Fatalf("got %v, %v, want one request", lent.Requests, err)
	}
	wantJSON(t, "filled", lent.Requests[0], `{`+base+
		`,"status":"Closed - Filled","holdShelfExpirationDate":"2020-01-01T00:00:00Z"}`)
	session := lent.Session
	if uuid.Validate(session.ID()) != nil {
		t.Errorf("the session's id is %q", session.ID())
	}
	delete(session, "id")
	wantJSON(t, "session", session,
		fmt.Sprintf(`{"patronId":%q,"loanId":%q,"actionType":"Check-out","sessionId":%q,%s}`, patronID, loanID, deskID,
			metadata))

	for name, tt := range map[string]struct {
		replace map[string]any
		want    string
	}{
		"on the hold shelf": {
			map[string]any{"requestStatus": "Open - Awaiting pickup", "holdShelfExpirationDate": "2026-04-01T00:00:00Z"},
			`"status":"Open - Awaiting pickup","holdShelfExpirationDate":"2026-04-01T00:00:00Z"`,
		},
		"sent on": {map[string]any{"requestStatus": "Open - In transit"}, `"status":"Open - In transit"`},
	} {
		tt.replace["requestId"], tt.replace["titleLevelRequests"] = wishID("a"), true
		in, err := commit.ParseCheckIn(checkInBody(t, tt.replace))
		if err != nil {
			t.Fatal(err)
		}
		back, err := in.Decide(ctx(t), commit.Seen{
			Item: item, Loan: storedLoan(t, patronID, itemID), Queue: queue(t, own), Now: now,
		})
		if err != nil || len(back.Requests) != 1 {
			t.Fatalf("%s: got %v, %v, want one request", name, back.Requests, err)
		}
		wantJSON(t, name, back.Requests[0], `{`+base+`,"position":1,`+tt.want+`}`)
		if got := back.Session; got.Text("actionType") != "Check-in" || got.Text("patronId") != patronID.String() ||
			got.Text("loanId") != loanID.String() {
			t.Errorf("%s: got the session %v", name, got)
		}
	}
}
