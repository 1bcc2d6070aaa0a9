package commit_test

import (
	"fmt"
	"maps"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// move parses a move of the request new, from another copy to the item, at version 3.
func move(t *testing.T, replace map[string]any) commit.RequestMove {
	t.Helper()
	all := map[string]any{"fromItemId": otherCopy}
	maps.Copy(all, replace)
	m, err := commit.ParseRequestMove(placement(t, all))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRequestMove_Decide(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	const isHold, isPage = `,"requestType":"Hold"`, `,"requestType":"Page"`
	by := func(name, of string, position int, more string) queued {
		return queued{name, of, position, fmt.Sprintf(`{"instanceId":%q%s}`, instanceID, more)}
	}
	wanted := queued{"new", otherCopy, 2, inTitle(isHold)}
	both := []queued{by("a", otherCopy, 1, ""), wanted, by("b", otherCopy, 3, ""), by("c", of, 1, ""), by("d", of, 2, "")}
	titles := map[string]any{"titleLevelRequests": true}
	pages := map[string]any{"request.requestType": "Page"}
	tests := map[string]struct {
		replace   map[string]any
		queue     []queued
		from, to  string // statuses of the items
		code      fault.Code
		says      string
		writes    string
		items     string // that change
		unchanged bool   // a repeat
	}{
		"to the end of another queue": {
			queue: both, to: "Checked out", writes: "b 2 Open - Not yet filled, new 3 Open - Not yet filled",
		},
		"to the end of its title": {
			replace: titles, queue: []queued{by("a", of, 1, ""), wanted, by("b", otherCopy, 3, "")}, to: "Checked out",
			writes: "b 2 Open - Not yet filled, new 3 Open - Not yet filled",
		},
		"to an item on the shelf": {
			replace: pages, queue: []queued{wanted}, to: "Available", writes: "new 1 Open - Not yet filled", items: "Paged",
		},
		"from a page": {
			replace: pages, queue: []queued{{name: "new", of: otherCopy, position: 1, requires: inTitle(isPage)}}, from: "Paged",
			to: "Available", writes: "new 1 Open - Not yet filled", items: "Available Paged",
		},
		"from a page that others want": {
			replace: pages, queue: []queued{by("a", otherCopy, 1, ""), wanted}, from: "Paged", to: "Available",
			writes: "new 1 Open - Not yet filled", items: "Paged",
		},
		"to a patron's other request": {
			queue: []queued{wanted, {name: "c", of: of, position: 1, requires: inTitle("")}}, to: "Checked out",
			code: fault.Invalid, says: "already has an open request for this item",
		},
		"the same again": {
			queue: []queued{{name: "new", of: of, position: 1, requires: inTitle(isHold)}}, to: "Checked out", unchanged: true,
		},
		"to its own item, another type": {
			replace: map[string]any{"fromItemId": of},
			queue:   []queued{{name: "new", of: of, position: 1, requires: inTitle(isPage)}}, to: "Checked out",
			code: fault.Invalid, says: "already has an open request for this item",
		},
		"to its own item, another type, in a title": {
			replace: map[string]any{"fromItemId": of, "titleLevelRequests": true},
			queue:   []queued{{name: "new", of: of, position: 1, requires: inTitle(isPage)}}, to: "Checked out",
			code: fault.Invalid, says: "already has an open request for this item",
		},
		"moved by others": {
			queue: []queued{{name: "new", of: deskID.String(), position: 1, requires: inTitle(isHold)}}, to: "Checked out",
			code: fault.RequestChanged, says: "another item",
		},
		"of another title": {
			queue: []queued{{name: "new", of: otherCopy, position: 1, requires: fmt.Sprintf(`{"instanceId":%q}`, otherCopy)}},
			to:    "Checked out", code: fault.RequestChanged, says: "another item",
		},
		"closed": {
			queue: []queued{{name: "new", of: otherCopy, position: 0, requires: `{"status":"Closed - Filled"}`}},
			to:    "Checked out", code: fault.Invalid, says: "The Request has already been closed",
		},
		"waits for pickup": {
			queue: []queued{{name: "new", of: otherCopy, position: 1, requires: inTitle("," + waiting)}}, to: "Checked out",
			code: fault.Invalid, says: "not yet filled",
		},
		"gone":                    {to: "Checked out", code: fault.NotFound, says: "There is no request"},
		"to an item that is gone": {queue: []queued{wanted}, code: fault.Invalid, says: "there is no item with this id"},
		"the item changed": {
			replace: map[string]any{"itemVersion": 2}, queue: []queued{wanted}, to: "Checked out", code: fault.ItemChanged,
			says: "3, not 2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := move(t, tt.replace)
			seen := commit.Seen{TitlesOn: m.To.TitleLevel, Queue: queue(t, tt.queue...)}
			if tt.to != "" {
				seen.Items = append(seen.Items, storedItem(t, tt.to))
			}
			if tt.from != "" {
				old := storedItem(t, tt.from)
				old["id"] = otherCopy
				seen.Items = append(seen.Items, old)
			}
			got := wantMade(t, m, seen, "new", madeOf{code: tt.code, says: tt.says, writes: tt.writes, items: tt.items})
			if tt.code == "" && (got.Repeated != tt.unchanged || got.Request.Text("itemId") != of) {
				t.Errorf("got the answer %v, repeated: %t", got.Request, got.Repeated)
			}
		})
	}
}

func TestRequestMove_IsJudgedInTheLockedQueue(t *testing.T) {
	t.Parallel()
	q := queue(t, queued{"new", otherCopy, 1, inTitle("")})
	items := []records.Record{storedItem(t, "Checked out")}
	for name, seen := range map[string]commit.Seen{
		"it came after the queue was locked": {Request: q[0], Items: items},
		"the title has a queue by now":       {Request: q[0], Items: items, Queue: q, TitlesOn: true},
	} {
		if _, err := move(t, nil).Decide(ctx(t), seen); !fault.Is(err, fault.RequestChanged) {
			t.Errorf("%s: got %v, want %s", name, err, fault.RequestChanged)
		}
	}
}

func TestRequestMove_CopiesTheNewItem(t *testing.T) {
	t.Parallel()
	q := queue(t, queued{"new", otherCopy, 1, inTitle(`,"item":{"barcode":"old"},"searchIndex":{"shelvingOrder":"old"}`)})
	for name, tt := range map[string]struct {
		replace map[string]any
		want    string
	}{
		"as sent": {
			map[string]any{
				"request.item":        map[string]any{"barcode": "1", "itemEffectiveLocationName": "Main"},
				"request.searchIndex": map[string]any{"shelvingOrder": "QA"},
			},
			"1 Main QA",
		},
		"by the item": {nil, "1  "},
	} {
		got, err := move(t, tt.replace).Decide(ctx(t), commit.Seen{
			Request: q[0], Queue: q, Items: []records.Record{storedItem(t, "Checked out")}, Now: now,
		})
		r := got.Request
		if copies := r.Text("item.barcode") + " " + r.Text("item.itemEffectiveLocationName") + " " +
			r.Text("searchIndex.shelvingOrder"); err != nil || copies != tt.want {
			t.Errorf("%s: got %q, %v, want %q", name, copies, err, tt.want)
		}
	}
}

// A recall that is moved to an item on loan recalls its loan.
func TestRequestMove_RecallsTheLoan(t *testing.T) {
	t.Parallel()
	const due = "2026-03-10T00:00:00Z"
	loan := decode(t, `{"id":%q,"itemId":%q,"userId":%q,"loanDate":"2026-03-01T00:00:00Z",`+
		`"dueDate":"2026-04-01T00:00:00Z","action":"checkedout","status":{"name":"Open"}}`,
		deskID, itemID, otherID)
	m := move(t, map[string]any{
		"request.requestType": "Recall",
		"recall":              map[string]any{"loanId": deskID, "judgedDueDate": loan["dueDate"], "dueDate": due},
	})
	q := queue(t, queued{"new", otherCopy, 1, inTitle("")})
	got, err := m.Decide(ctx(t), commit.Seen{
		Request: q[0], Queue: q, Items: []records.Record{storedItem(t, "Checked out")}, Loan: loan, Now: now,
	})
	if err != nil || got.Loan.Text("dueDate") != due || got.Loan["dueDateChangedByRecall"] != true ||
		!hasEvent(got, commit.LoanDueDateChanged) {
		t.Errorf("got %+v, %v, want the loan recalled", got, err)
	}
}
