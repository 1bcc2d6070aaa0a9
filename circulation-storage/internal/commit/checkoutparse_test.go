package commit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestParseCheckOut_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replace map[string]any
		code    fault.Code
		says    string
	}{
		"neither lock nor settings": {
			replace: map[string]any{"lockId": nil}, code: fault.Invalid, says: "lockId or settingsVersion is required",
		},
		"empty settings version": {
			replace: map[string]any{"lockId": nil, "settingsVersion": ""}, code: fault.Invalid,
			says: "lockId or settingsVersion is required",
		},
		"settings version is a number": {
			replace: map[string]any{"lockId": nil, "settingsVersion": 1}, code: fault.Invalid,
			says: "settingsVersion must be of type string",
		},
		"lock id is none": {
			replace: map[string]any{"lockId": "'; DROP TABLE loan"}, code: fault.Invalid, says: "lockId must be a UUID",
		},
		"no loan": {replace: map[string]any{"loan": nil}, code: fault.Invalid, says: "loan is required"},
		"loan is a list": {
			replace: map[string]any{"loan": []int{}}, code: fault.Invalid, says: "loan must be of type object",
		},
		"no loan id": {replace: map[string]any{"loan.id": nil}, code: fault.Invalid, says: "loan.id is required"},
		"loan id is none": {
			replace: map[string]any{"loan.id": "1"}, code: fault.Invalid, says: "loan.id must be a UUID",
		},
		"no patron": {
			replace: map[string]any{"loan.userId": nil}, code: fault.Invalid, says: "loan.userId is required",
		},
		"no item": {
			replace: map[string]any{"loan.itemId": nil}, code: fault.Invalid, says: "loan.itemId is required",
		},
		"item id is a number": {
			replace: map[string]any{"loan.itemId": 7}, code: fault.Invalid, says: "loan.itemId must be of type string",
		},
		"no action": {
			replace: map[string]any{"loan.action": nil}, code: fault.Invalid, says: "loan.action is required",
		},
		"closed loan": {
			replace: map[string]any{"loan.status": map[string]any{"name": "Closed"}}, code: fault.Invalid,
			says: "loan.status.name must be Open",
		},
		"loan returned already": {
			replace: map[string]any{"loan.returnDate": "2026-03-04T05:06:00Z"}, code: fault.Invalid,
			says: "loan.returnDate must be absent",
		},
		"bad due date": {
			replace: map[string]any{"loan.dueDate": "tomorrow"}, code: fault.Invalid,
			says: "loan.dueDate must be a date and time",
		},
		"no version": {
			replace: map[string]any{"itemVersion": nil}, code: fault.Invalid, says: "itemVersion is required",
		},
		"version is text": {
			replace: map[string]any{"itemVersion": "3"}, code: fault.Invalid, says: "itemVersion must be of type integer",
		},
		"version is broken": {
			replace: map[string]any{"itemVersion": 3.5}, code: fault.Invalid, says: "itemVersion must be of type integer",
		},
		"version is negative": {
			replace: map[string]any{"itemVersion": -1}, code: fault.Invalid, says: "itemVersion must be at least 0",
		},
		"version is huge": {
			replace: map[string]any{"itemVersion": 1e30}, code: fault.Invalid, says: "itemVersion must be at most",
		},
		"limit without a lock": {
			replace: map[string]any{
				"lockId": nil, "settingsVersion": "7", "limit": map[string]any{"max": 3},
			}, code: fault.Invalid, says: "limits are allowed with lockId only",
		},
		"limits without a lock": {
			replace: map[string]any{
				"lockId": nil, "settingsVersion": "7", "limits": []any{map[string]any{"max": 0}},
			}, code: fault.Invalid, says: "limits are allowed with lockId only",
		},
		"a lock to take without its id": {
			replace: map[string]any{
				"lockId": nil, "settingsVersion": "7", "takeLock": map[string]any{"requestId": itemID}, "releaseLock": true,
			}, code: fault.Invalid, says: "takeLock needs a new lockId",
		},
		"a lock to take and to keep": {
			replace: map[string]any{"takeLock": map[string]any{"requestId": itemID}}, code: fault.Invalid,
			says: "takeLock needs releaseLock",
		},
		"limits are no list": {
			replace: map[string]any{"limits": map[string]any{"max": 3}}, code: fault.Invalid,
			says: "limits must be of type array",
		},
		"a limit below zero": {
			replace: map[string]any{"limits": []any{map[string]any{"max": -1}}}, code: fault.Invalid,
			says: "limits[0].max must be at least 0",
		},
		"a limit of half a minute": {
			replace: map[string]any{"limits": []any{map[string]any{"max": 1, "overdueMinutes": 0.5}}}, code: fault.Invalid,
			says: "limits[0].overdueMinutes must be of type integer",
		},
		"limit is a number": {
			replace: map[string]any{"limit": 3}, code: fault.Invalid, says: "limit must be of type object",
		},
		"limit without a number": {
			replace: map[string]any{"limit": map[string]any{"loanTypeId": itemID}}, code: fault.Invalid,
			says: "limit.max is required",
		},
		"limit is none": {
			replace: map[string]any{"limit": map[string]any{"max": 0}}, code: fault.Invalid,
			says: "limit.max must be at least 1",
		},
		"limit is huge": {
			replace: map[string]any{"limit": map[string]any{"max": 10000}}, code: fault.Invalid,
			says: "limit.max must be at most 9999",
		},
		"type of the limit is none": {
			replace: map[string]any{"limit": map[string]any{"max": 3, "materialTypeId": "book"}}, code: fault.Invalid,
			says: "limit.materialTypeId must be a UUID",
		},
		"request id is none": {
			replace: map[string]any{"requestId": "first"}, code: fault.Invalid, says: "requestId must be a UUID",
		},
		"title level is a number": {
			replace: map[string]any{"titleLevelRequests": 1}, code: fault.Invalid,
			says: "titleLevelRequests must be of type boolean",
		},
		"session id is none": {
			replace: map[string]any{"sessionId": "s"}, code: fault.Invalid, says: "sessionId must be a UUID",
		},
		"NUL in the loan": {replace: map[string]any{"loan.actionComment": "a\x00b"}, code: fault.Invalid, says: `\u0000`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := commit.ParseCheckOut(body(t, tt.replace))
			if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s saying %q", err, tt.code, tt.says)
			}
		})
	}
	for _, doc := range []string{"", "null", "[]", "7", `{"loan":`, `{} {}`, "\xff"} {
		if _, err := commit.ParseCheckOut([]byte(doc)); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Malformed) {
			t.Errorf("%q: got %v, want Invalid or Malformed", doc, err)
		}
	}
}

// Go reads JSON properties without regard to case. Properties that the schema did not
// check must not be written.
func TestParseCheckOut_ComparesNamesWithCase(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(string(body(t, nil)), `"itemVersion":3`,
		`"itemVersion":3,"ItemVersion":4,"LOAN":{"id":"x"},"SettingsVersion":"1"`, 1)
	c, err := commit.ParseCheckOut([]byte(doc))
	if err != nil || c.ItemVersion != 3 || c.LoanID != loanID {
		t.Errorf("got %+v, %v, want version 3 of the loan %s", c, err, loanID)
	}
}

func TestParseCheckOut_Accepts(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]map[string]any{
		"with a lock":      nil,
		"with settings":    {"lockId": nil, "settingsVersion": "7"},
		"with both":        {"settingsVersion": "7"},
		"nulls are absent": {"settingsVersion": json.RawMessage("null"), "loan.returnDate": json.RawMessage("null")},
		"no status":        {"loan.status": nil},
		"ids in upper case": {
			"loan.id": strings.ToUpper(loanID.String()), "loan.userId": strings.ToUpper(patronID.String()),
		},
		"version like 3.0":   {"itemVersion": json.RawMessage("3.0")},
		"unknown properties": {"future": true},
	} {
		c, err := commit.ParseCheckOut(body(t, replace))
		if err != nil || c.LoanID != loanID || c.UserID != patronID || c.ItemID != itemID || c.ItemVersion != 3 {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
}
