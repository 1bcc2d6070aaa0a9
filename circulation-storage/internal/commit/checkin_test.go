package commit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func checkInBody(t *testing.T, replace map[string]any) []byte {
	t.Helper()
	doc := map[string]any{
		"itemId": itemID, "servicePointId": deskID, "checkInDate": "2026-03-03T00:00:00Z", "itemVersion": 3,
		"itemStatus": "Available",
	}
	maps.Copy(doc, replace)
	maps.DeleteFunc(doc, func(_ string, v any) bool { return v == nil })
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseCheckIn_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replace map[string]any
		says    string
	}{
		"id is none":           {map[string]any{"id": "first"}, "id must be a UUID"},
		"no item":              {map[string]any{"itemId": nil}, "itemId is required"},
		"item id is none":      {map[string]any{"itemId": "' OR 1=1"}, "itemId must be a UUID"},
		"no service point":     {map[string]any{"servicePointId": nil}, "servicePointId is required"},
		"no date":              {map[string]any{"checkInDate": nil}, "checkInDate is required"},
		"date is none":         {map[string]any{"checkInDate": "today"}, "checkInDate must be a date and time"},
		"no version":           {map[string]any{"itemVersion": nil}, "itemVersion is required"},
		"version is text":      {map[string]any{"itemVersion": "3"}, "itemVersion must be of type integer"},
		"no status":            {map[string]any{"itemStatus": nil}, "itemStatus is required"},
		"unknown status":       {map[string]any{"itemStatus": "Lent"}, "itemStatus must be one of"},
		"status Checked out":   {map[string]any{"itemStatus": "Checked out"}, "itemStatus must not be Checked out"},
		"staff member is none": {map[string]any{"staffMemberId": "me"}, "staffMemberId must be a UUID"},
		"unknown action":       {map[string]any{"loanAction": "renewed"}, "loanAction must be one of"},
		"destination is none": {
			map[string]any{"itemStatus": "In transit", "inTransitDestinationServicePointId": "x"}, "must be a UUID",
		},
		"destination of a resting item": {
			map[string]any{"inTransitDestinationServicePointId": deskID}, "with the itemStatus In transit only",
		},
		"request id is none": {
			map[string]any{"requestId": "first", "requestStatus": "Open - In transit"}, "requestId must be a UUID",
		},
		"request without status": {map[string]any{"requestId": otherID}, "requestId and requestStatus go together"},
		"status without request": {
			map[string]any{"requestStatus": "Open - In transit"}, "requestId and requestStatus go together",
		},
		"closing a request": {
			map[string]any{"requestId": otherID, "requestStatus": "Closed - Filled"}, "requestStatus must be one of",
		},
		"hold shelf of one in transit": {
			map[string]any{
				"requestId": otherID, "requestStatus": "Open - In transit", "holdShelfExpirationDate": "2026-04-01T00:00:00Z",
			},
			"with the requestStatus Open - Awaiting pickup only",
		},
		"title level is text": {
			map[string]any{"titleLevelRequests": "true"}, "titleLevelRequests must be of type boolean",
		},
		"session is none":            {map[string]any{"sessionId": 1}, "sessionId must be of type string"},
		"NUL in an unknown property": {map[string]any{"note": "\x00"}, `\u0000`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := commit.ParseCheckIn(checkInBody(t, tt.replace))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want Invalid saying %q", err, tt.says)
			}
		})
	}
}

func TestCheckIn_Decide(t *testing.T) {
	t.Parallel()
	const at = "2026-03-04T05:06:07.089+00:00"
	stamp := fmt.Sprintf(`"updatedDate":%q,"updatedByUserId":%q`, at, staffID)
	item := func(status, more string) string {
		return fmt.Sprintf(`{"id":%q,"_version":4,"barcode":"1","effectiveLocationId":"e","status":{"name":%q,"date":%q},%s
			"holdingsRecordId":%q,"metadata":{"createdDate":"2020","createdByUserId":"c",
			%s}}`, itemID, status, at, more, deskID, stamp)
	}
	loan := func(action, status string) string {
		return fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-01T00:00:00Z","status":{"name":"Closed"},
			"action":%q,
			"returnDate":"2026-03-03T00:00:00Z","systemReturnDate":%q,"checkinServicePointId":%q,"itemStatus":%q,
			"metadata":{"createdDate":"2026",%s}}`, loanID, patronID, itemID, action, at, deskID, status, stamp)
	}
	lastCheckIn := fmt.Sprintf(`"lastCheckIn":{"dateTime":%q,"servicePointId":%q},`, at, deskID)
	tests := map[string]struct {
		replace              map[string]any
		onLoan               bool
		wantItem, wantLoan   string
		wantStatus, wantUser string
	}{
		"item on loan": {
			replace: nil, onLoan: true, wantItem: item("Available", lastCheckIn), wantLoan: loan("checkedin", "Available"),
			wantStatus: "Available", wantUser: patronID.String(),
		},
		"claimed return found": {
			replace:  map[string]any{"loanAction": "checkedInFoundByLibrary"},
			onLoan:   true,
			wantItem: item("Available", lastCheckIn), wantLoan: loan("checkedInFoundByLibrary", "Available"),
			wantStatus: "Available", wantUser: patronID.String(),
		},
		"goes in transit": {
			replace:  map[string]any{"itemStatus": "In transit", "inTransitDestinationServicePointId": otherID},
			onLoan:   true,
			wantItem: item("In transit", lastCheckIn+fmt.Sprintf(`"inTransitDestinationServicePointId":%q,`, otherID)),
			wantLoan: loan("checkedin", "In transit"), wantStatus: "In transit", wantUser: patronID.String(),
		},
		"not on loan, by a member of staff": {
			replace: map[string]any{"staffMemberId": staffID},
			onLoan:  false,
			wantItem: item("Available", fmt.Sprintf(`"lastCheckIn":{"dateTime":%q,"servicePointId":%q,"staffMemberId":%q},`, at,
				deskID, staffID)),
			wantLoan: `null`, wantStatus: "Available", wantUser: "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := commit.ParseCheckIn(checkInBody(t, tt.replace))
			if err != nil {
				t.Fatal(err)
			}
			seen := commit.Seen{Item: storedItem(t, "Checked out"), Now: now}
			loanOfEvent := ""
			if tt.onLoan {
				seen.Loan, loanOfEvent = storedLoan(t, patronID, itemID), loanID.String()
				seen.Loan["actionComment"] = "by staff" // of the action before; the closed loan lacks it
			}
			got, err := c.Decide(ctx(t), seen)
			if err != nil {
				t.Fatal(err)
			}
			wantJSON(t, "item", got.Item, tt.wantItem)
			wantJSON(t, "loan", got.Loan, tt.wantLoan)
			p := got.Events[0].Payload
			user, _ := p["userId"].(string)
			loan, _ := p["loanId"].(string)
			if got.Events[0].Type != "ITEM_CHECKED_IN" || p["itemId"] != itemID.String() ||
				p["itemStatusName"] != tt.wantStatus || user != tt.wantUser || loan != loanOfEvent ||
				p["requestId"] != "12/circulation" {
				t.Errorf("event: got %+v", got.Events[0])
			}
			if seen.Item.Text("status.name") != "Checked out" || (tt.onLoan && !records.IsOpenLoan(seen.Loan)) {
				t.Error("what was read has been changed")
			}
		})
	}
}

// As in FOLIO, an item that is back will not be billed, and its loan says when it aged to lost.
func TestCheckIn_OfAnItemThatAgedToLost(t *testing.T) {
	t.Parallel()
	c, err := commit.ParseCheckIn(checkInBody(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	const billing = `{"lostItemHasBeenBilled":false,"dateLostItemShouldBeBilled":"2026-04-01T00:00:00Z",` +
		`"agedToLostDate":"2026-03-01T00:00:00Z"}`
	for status, want := range map[string]string{
		"Aged to lost": `{"agedToLostDate":"2026-03-01T00:00:00Z"}`, "Checked out": billing,
	} {
		loan := storedLoan(t, patronID, itemID)
		loan["agedToLostDelayedBilling"] = map[string]any(decode(t, billing))
		got, err := c.Decide(ctx(t), commit.Seen{Item: storedItem(t, status), Loan: loan, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		wantJSON(t, status, got.Loan.Object("agedToLostDelayedBilling"), want)
		wantJSON(t, "what was read", loan.Object("agedToLostDelayedBilling"), billing)
	}
}

func TestCheckIn_Refusals(t *testing.T) {
	t.Parallel()
	c, err := commit.ParseCheckIn(checkInBody(t, map[string]any{"itemVersion": 2}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decide(ctx(t), commit.Seen{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no item: got %v, want Invalid", err)
	}
	if _, err := c.Decide(ctx(t), commit.Seen{Item: storedItem(t, "Checked out")}); !fault.Is(err,
		fault.ItemChanged) {
		t.Errorf("another version: got %v, want ItemChanged", err)
	}
}

func TestCheckIn_RepeatIgnoresTheItem(t *testing.T) {
	t.Parallel()
	checkInID := "6c8b0c4e-1d0e-4b53-9a8e-3d1f0a6a1c11"
	c, err := commit.ParseCheckIn(checkInBody(t, map[string]any{"id": checkInID, "itemVersion": 2}))
	if err != nil || c.ID.String() != checkInID {
		t.Fatalf("got %s, %v", c.ID, err)
	}
	past := schemas.CheckInResult{Item: json.RawMessage(`{"id":"i"}`)}
	for name, item := range map[string]records.Record{"another version": storedItem(t, "Checked out"), "deleted": nil} {
		got, err := c.Decide(ctx(t), commit.Seen{Item: item, Before: itemID, Past: past})
		if err != nil || !got.Repeated || string(got.Past.Item) != `{"id":"i"}` || got.Item != nil {
			t.Errorf("%s: got %+v, %v, want the earlier answer and nothing to write", name, got, err)
		}
	}
	if _, err := c.Decide(ctx(t), commit.Seen{Before: loanID, Past: past}); !fault.Is(err, fault.Invalid) {
		t.Errorf("of another item: got %v, want %s", err, fault.Invalid)
	}
}
