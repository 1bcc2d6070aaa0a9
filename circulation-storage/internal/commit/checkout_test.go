package commit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

var (
	loanID   = uuid.MustParse("0bab56e5-1ab6-4ac2-afdf-8b2df0434378")
	patronID = uuid.MustParse("1ad737b0-d847-11e6-bf26-cec0c932ce02")
	otherID  = uuid.MustParse("2fe2b8bc-2b4b-4e0d-8a1e-6dc1e5ec1f4f")
	itemID   = uuid.MustParse("3e0cbbe5-6d1a-4b0c-9d5d-0c1b7f9b7a10")
	lockID   = uuid.MustParse("4f1d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77")
	staffID  = uuid.MustParse("5a4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77")
	deskID   = uuid.MustParse("6c4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77")
	now      = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
)

// body is a valid body with some properties replaced. A path with "loan." is one of the
// loan; nil removes the property.
func body(t *testing.T, replace map[string]any) []byte {
	t.Helper()
	loan := map[string]any{
		"id": loanID, "userId": patronID, "itemId": itemID, "loanDate": "2026-03-04T05:06:00Z",
		"dueDate": "2026-03-25T23:59:59Z",
		"action":  "checkedout", "itemStatus": "Checked out", "status": map[string]any{"name": "Open"},
		"vendorField": map[string]any{"a": 1.50},
	}
	doc := map[string]any{"loan": loan, "itemVersion": 3, "lockId": lockID}
	for path, value := range replace {
		target := doc
		key, inLoan := strings.CutPrefix(path, "loan.")
		if inLoan {
			target = loan
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

func decode(t *testing.T, doc string, args ...any) records.Record {
	t.Helper()
	r, err := records.Decode(fmt.Appendf(nil, doc, args...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func storedItem(t *testing.T, status string) records.Record {
	return decode(t, `{"id":%q,"_version":3,"barcode":"1","status":{"name":%q,"date":"2020-01-01T00:00:00.000+00:00"},
		"holdingsRecordId":%q,"effectiveLocationId":"e","inTransitDestinationServicePointId":"d",
		"metadata":{"createdDate":"2020","createdByUserId":"c"}}`, itemID, status, deskID)
}

func storedLoan(t *testing.T, user, item uuid.UUID) records.Record {
	return decode(t, `{"id":%q,"userId":%q,"itemId":%q,"status":{"name":"Open"},"loanDate":"2026-03-01T00:00:00Z",
		"action":"checkedout",
		"metadata":{"createdDate":"2026"}}`, loanID, user, item)
}

func ctx(t *testing.T) context.Context {
	return okapi.NewContext(t.Context(), okapi.Call{RequestID: "12/circulation", UserID: staffID.String()})
}

func TestCheckOut_Decide(t *testing.T) {
	t.Parallel()
	const (
		available = "Available"
		openLoan  = "Cannot have more than one open loan for the same item"
	)
	withoutLock := map[string]any{"lockId": nil, "settingsVersion": "7"}
	withBoth := map[string]any{"settingsVersion": "7"}
	environmentOn := func(s *commit.Seen) { s.EnvironmentOn = true }
	lease := map[string]any{"claimId": otherID}
	limited := map[string]any{"limit": map[string]any{"max": 3}}
	severally := map[string]any{"limits": []any{map[string]any{"max": 3}, map[string]any{"max": 1, "lost": true}}}
	nilPatron := map[string]any{"loan.userId": uuid.Nil}
	tests := map[string]struct {
		replace map[string]any
		change  func(*commit.Seen)
		code    fault.Code
		says    string
	}{
		"lock held": {replace: nil, change: func(*commit.Seen) {}, code: "", says: ""},
		"lock gone": {
			replace: nil, change: func(s *commit.Seen) { s.LockUser = uuid.Nil }, code: fault.LockLost, says: "",
		},
		"lock of another patron": {
			replace: nil, change: func(s *commit.Seen) { s.LockUser = otherID }, code: fault.LockLost, says: "",
		},
		"no patron, no lock": {
			replace: nilPatron, change: func(s *commit.Seen) { s.LockUser = uuid.Nil }, code: fault.LockLost, says: "",
		},
		"settings as judged": {
			replace: withoutLock, change: func(s *commit.Seen) { s.LockUser = uuid.Nil }, code: "", says: "",
		},
		"settings changed": {
			replace: withoutLock, change: func(s *commit.Seen) { s.SettingsVersion = "8" }, code: fault.SettingsChanged,
			says: "version 8, not 7",
		},

		"lock held, settings as judged": {replace: withBoth, change: func(*commit.Seen) {}, code: "", says: ""},
		"lock held, settings changed": {
			replace: withBoth, change: func(s *commit.Seen) { s.SettingsVersion = "8" }, code: fault.SettingsChanged,
			says: "version 8, not 7",
		},
		"lock gone, settings as judged": {
			replace: withBoth, change: func(s *commit.Seen) { s.LockUser = uuid.Nil }, code: fault.LockLost, says: "",
		},
		"no lock, an environment says on": {
			replace: withoutLock, change: environmentOn, code: fault.SettingsChanged, says: "acquire the lock",
		},
		"a lock, an environment says on": {replace: withBoth, change: environmentOn, code: "", says: ""},
		"repeat, an environment says on": {
			replace: withoutLock,
			change:  func(s *commit.Seen) { s.EnvironmentOn, s.Loan = true, storedLoan(t, patronID, itemID) }, code: "",
			says: "",
		},
		"given up": {
			replace: nil, change: func(s *commit.Seen) { s.GivenUp = true }, code: fault.GivenUp, says: "nothing was lent",
		},
		"given up, its key lease and its lock gone": {
			replace: lease, change: func(s *commit.Seen) { s.GivenUp, s.LockUser = true, uuid.Nil }, code: fault.GivenUp,
			says: "",
		},
		"key lease held": {
			replace: lease, change: func(s *commit.Seen) { s.LeasedLoan = loanID }, code: "", says: "",
		},
		"key lease gone": {
			replace: lease, change: func(*commit.Seen) {}, code: fault.KeyLeaseLost, says: "another caller finishes",
		},
		"key lease of another loan": {
			replace: lease, change: func(s *commit.Seen) { s.LeasedLoan = otherID }, code: fault.KeyLeaseLost, says: "",
		},
		"key lease gone, repeat": {
			replace: lease, change: func(s *commit.Seen) { s.Loan = storedLoan(t, patronID, itemID) }, code: "", says: "",
		},

		"below the limit": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans = []int{2} }, code: "", says: "",
		},
		"at the limit": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans = []int{3} }, code: fault.LimitReached,
			says: "has 3 open loans, and the limit is 3",
		},
		"beyond the limit": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans = []int{4} }, code: fault.LimitReached,
			says: "has 4 open loans",
		},
		"no limit": {
			replace: nil, change: func(s *commit.Seen) { s.OpenLoans = []int{99} }, code: "", says: "",
		},
		"at the limit, a repeat": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans, s.Loan = []int{3}, storedLoan(t, patronID, itemID) },
			code: "", says: "",
		},
		"at the limit, lock gone": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans, s.LockUser = []int{3}, uuid.Nil },
			code: fault.LockLost, says: "",
		},
		"at the limit, item lent since": {
			replace: limited, change: func(s *commit.Seen) { s.OpenLoans, s.Item = []int{3}, storedItem(t, "Checked out") },
			code: fault.ItemChanged, says: "",
		},

		"below both limits": {
			replace: severally, change: func(s *commit.Seen) { s.OpenLoans = []int{2, 0} }, code: "", says: "",
		},
		"at the second limit": {
			replace: severally, change: func(s *commit.Seen) { s.OpenLoans = []int{2, 1} }, code: fault.LimitReached,
			says: "has 1 open loans, and the limit is 1",
		},
		"at both limits": {
			replace: severally, change: func(s *commit.Seen) { s.OpenLoans = []int{3, 1} }, code: fault.LimitReached,
			says: "limit is 3; The patron has 1 open loans",
		},

		"no such item": {
			replace: nil, change: func(s *commit.Seen) { s.Item = nil }, code: fault.Invalid, says: "no item with this id",
		},
		"item changed": {
			replace: map[string]any{"itemVersion": 2}, change: func(*commit.Seen) {}, code: fault.ItemChanged, says: "3, not 2",
		},
		"item on loan": {
			replace: nil, change: func(s *commit.Seen) { s.OnLoan = true }, code: fault.Invalid, says: openLoan,
		},
		"bad loan date": {
			replace: map[string]any{"loan.loanDate": "yesterday"}, change: func(*commit.Seen) {}, code: fault.Malformed,
			says: "loan date must be a date time",
		},
		"fence before item": {
			replace: nil, change: func(s *commit.Seen) { s.LockUser, s.Item = uuid.Nil, nil }, code: fault.LockLost, says: "",
		},

		"item Checked out": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "Checked out") }, code: fault.ItemChanged,
			says: "Checked out",
		},
		"item Declared lost": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "Declared lost") }, code: fault.ItemChanged,
			says: "Declared lost",
		},
		"item Claimed returned": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "Claimed returned") }, code: fault.ItemChanged,
			says: "Claimed returned",
		},
		"item Intellectual item": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "Intellectual item") }, code: fault.ItemChanged,
			says: "Intellectual item",
		},
		"item Aged to lost": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "Aged to lost") }, code: fault.ItemChanged,
			says: "Aged to lost",
		},
		"item In transit": {
			replace: nil, change: func(s *commit.Seen) { s.Item = storedItem(t, "In transit") }, code: "", says: "",
		},

		"repeat": {
			replace: nil, change: func(s *commit.Seen) { s.Loan = storedLoan(t, patronID, itemID) }, code: "", says: "",
		},
		"repeat after release, item changed since": {replace: nil, change: func(s *commit.Seen) {
			s.Loan, s.LockUser, s.OnLoan, s.Item = storedLoan(t, patronID, itemID), uuid.Nil, true, storedItem(t, "Checked out")
		}, code: "", says: ""},
		"repeat, settings changed since": {replace: withoutLock, change: func(s *commit.Seen) {
			s.Loan, s.SettingsVersion = storedLoan(t, patronID, itemID), "9"
		}, code: "", says: ""},
		"repeat, item deleted since": {
			replace: nil, change: func(s *commit.Seen) { s.Loan, s.Item = storedLoan(t, patronID, itemID), nil }, code: "",
			says: "",
		},
		"loan id of another patron": {
			replace: nil, change: func(s *commit.Seen) { s.Loan = storedLoan(t, otherID, itemID) }, code: fault.Invalid,
			says: "loan.id is already",
		},
		"loan id of another item": {
			replace: nil, change: func(s *commit.Seen) { s.Loan = storedLoan(t, patronID, otherID) }, code: fault.Invalid,
			says: "loan.id is already",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := commit.ParseCheckOut(body(t, tt.replace))
			if err != nil {
				t.Fatal(err)
			}
			seen := commit.Seen{
				LockUser: patronID, SettingsVersion: "7", Item: storedItem(t, available), Now: now,
			}
			tt.change(&seen)
			item := maps.Clone(seen.Item)
			got, err := c.Decide(ctx(t), seen)
			if tt.code != "" {
				if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %s saying %q", err, tt.code, tt.says)
				}
				return
			}
			if err != nil || got.Repeated != (seen.Loan != nil) {
				t.Errorf("got %+v, %v, want no fault, repeated %t", got, err, seen.Loan != nil)
			}
			if seen.Item.Text("status.name") != item.Text("status.name") {
				t.Error("the item that was read has been changed")
			}
		})
	}
}

func TestCheckOut_Writes(t *testing.T) {
	t.Parallel()
	c, err := commit.ParseCheckOut(body(t, map[string]any{
		"loan.status": nil, "loan.metadata": map[string]any{"createdDate": "forged"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Decide(ctx(t), commit.Seen{LockUser: patronID, Item: storedItem(t, "In transit"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	const at = "2026-03-04T05:06:07.089+00:00"
	wantJSON(t, "loan", got.Loan, fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-04T05:06:00Z",
		"dueDate":"2026-03-25T23:59:59Z",
		"action":"checkedout","itemStatus":"Checked out","status":{"name":"Open"},"vendorField":{"a":1.5},
		"metadata":{"createdDate":%[4]q,"createdByUserId":%[5]q,"updatedDate":%[4]q,
		"updatedByUserId":%[5]q}}`, loanID, patronID, itemID, at, staffID))
	wantJSON(t, "item", got.Item, fmt.Sprintf(`{"id":%q,"_version":4,"barcode":"1","status":{"name":"Checked out",
		"date":%q},"effectiveLocationId":"e",
		"holdingsRecordId":%[4]q,"metadata":{"createdDate":"2020","createdByUserId":"c","updatedDate":%[2]q,
		"updatedByUserId":%[3]q}}`, itemID, at, staffID, deskID))
	wantJSON(t, "event", got.Events, fmt.Sprintf(`[{"Type":"ITEM_CHECKED_OUT","Payload":{"loanId":%q,"userId":%q,
		"itemId":%q,"loanDate":"2026-03-04T05:06:00Z","dueDate":"2026-03-25T23:59:59Z","action":"checkedout",
		"requestId":"12/circulation","updatedByUserId":%q}}]`, loanID, patronID, itemID, staffID))
}

// wantJSON compares documents without regard to the order of properties.
func wantJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if canonical(t, raw) != canonical(t, []byte(want)) {
		t.Errorf("%s: got  %s\nwant %s", what, canonical(t, raw), canonical(t, []byte(want)))
	}
}

func canonical(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCheckOut_NamesReachedLimitsByTheirPlace(t *testing.T) {
	t.Parallel()
	limit := func(max int) map[string]any { return map[string]any{"max": max} }
	c, err := commit.ParseCheckOut(body(t, map[string]any{"limits": []any{limit(2), limit(9), limit(1)}}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Decide(ctx(t), commit.Seen{
		LockUser: patronID, Item: storedItem(t, "Available"), Now: now, OpenLoans: []int{2, 2, 2},
	})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.LimitReached || len(f.Details) != 2 {
		t.Fatalf("got %v, want two limits", err)
	}
	for i, want := range []string{"0", "2"} {
		if p := f.Details[i].Parameters; p[0].Key != "openLoans" || *p[0].Value != "2" || p[1].Key != "limit" ||
			*p[1].Value != want {
			t.Errorf("got %+v, want the limit %s", p, want)
		}
	}
}
