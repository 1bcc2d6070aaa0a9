package commit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// queued is an open request of a queue, whose name becomes its id.
type queued struct {
	name, of string // of is the item that it names, "" for none
	position int    // 0 for none
	requires string // other properties of the record
}

func wishID(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// queue builds a queue. Requests are of the item and by otherID by default.
func queue(t *testing.T, requests ...queued) commit.Queue {
	t.Helper()
	var q commit.Queue
	for _, w := range requests {
		of, pos := "", ""
		if w.of != "" {
			of = fmt.Sprintf(`,"itemId":%q,"holdingsRecordId":%q`, w.of, deskID)
		}
		if w.position > 0 {
			pos = fmt.Sprintf(`,"position":%d`, w.position)
		}
		r := decode(t, `{"id":%q,"requesterId":%q,"requestLevel":"Item","status":"Open - Not yet filled","name":%q%s%s}`,
			wishID(w.name), otherID, w.name, of, pos)
		if w.requires != "" {
			for key, value := range decode(t, "%s", w.requires) {
				r[key] = value
			}
		}
		q = append(q, r)
	}
	return q
}

func mine(more string) string { return fmt.Sprintf(`{"requesterId":%q%s}`, patronID, more) }

const (
	title      = `"requestLevel":"Title"`
	waiting    = `"status":"Open - Awaiting pickup"`
	otherCopy  = "7b4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77"
	unassigned = ""
)

// written lists requests as "name position status", in the order of names.
func written(changed []records.Record) string {
	var lines []string
	for _, r := range changed {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %v %s", r.Text("name"), r["position"], r.Text("status"))))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// madeOf is what a commit of requests makes of a queue.
type madeOf struct {
	code         fault.Code
	says, writes string // the refusal; the requests
	items        string // statuses of those that change
}

// judge is a commit of requests.
type judge interface {
	Decide(ctx context.Context, seen commit.Seen) (commit.Change, error)
}

// wantMade lets a commit that names a request, "" for none, judge a queue.
func wantMade(t *testing.T, c judge, seen commit.Seen, name string, want madeOf) commit.Change {
	t.Helper()
	seen.Now = now
	for _, r := range seen.Queue {
		if name != "" && r.Text("name") == name {
			seen.Request = r
		}
	}
	got, err := c.Decide(ctx(t), seen)
	if fault.CodeOf(err) != want.code || err != nil && !strings.Contains(err.Error(), want.says) {
		t.Fatalf("got %v, want %q saying %q", err, want.code, want.says)
	}
	if w := written(got.Requests); err == nil && w != want.writes {
		t.Errorf("got  %s\nwant %s", w, want.writes)
	}
	var items []string
	for _, item := range got.Items {
		items = append(items, item.Text("status.name"))
		if item["_version"] != 4 {
			t.Errorf("got the item %v, want the next version", item)
		}
	}
	if changed := strings.Join(items, " "); changed != want.items {
		t.Errorf("items become %q, want %q", changed, want.items)
	}
	return got
}

// becomes is Available for an item that is freed.
func becomes(freed bool) string {
	if freed {
		return "Available"
	}
	return ""
}

func TestCheckOut_JudgesWhetherARecallWaits(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	own := queued{"a", of, 1, mine(`,"requestType":"Recall"`)}
	recall := queued{"b", of, 2, `{"requestType":"Recall"}`}
	for _, tt := range []struct {
		name  string
		sent  any // nil is not judged
		queue []queued
		lent  bool
	}{
		{name: "none, as seen", sent: false, queue: []queued{own}, lent: true},
		{name: "one, as seen", sent: true, queue: []queued{own, recall}, lent: true},
		{name: "came since", sent: false, queue: []queued{own, recall}},
		{name: "gone since", sent: true, queue: []queued{own}},
		{
			name: "of another copy", sent: false,
			queue: []queued{own, {name: "b", of: otherCopy, position: 2, requires: `{"requestType":"Recall"}`}}, lent: true,
		},
		{
			name: "a hold", sent: false,
			queue: []queued{own, {name: "b", of: of, position: 2, requires: `{"requestType":"Hold"}`}}, lent: true,
		},
		{name: "not judged", queue: []queued{own, recall}, lent: true},
	} {
		c, err := commit.ParseCheckOut(body(t, map[string]any{"requestId": wishID("a"), "recalled": tt.sent}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Decide(ctx(t), commit.Seen{
			LockUser: patronID, Item: storedItem(t, "Available"), Queue: queue(t, tt.queue...), Now: now,
		})
		if tt.lent && err != nil || !tt.lent && !fault.Is(err, fault.RequestChanged) {
			t.Errorf("%s: got %v, want it lent: %t", tt.name, err, tt.lent)
		}
	}
}

func TestCheckOut_FillsTheFirstRequest(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	const filled = "a <nil> Closed - Filled"
	tests := map[string]struct {
		sent   string // the request that the check-out names
		titles bool
		queue  []queued
		says   string // of the refusal; "" is lent
		writes string
	}{
		"empty queue": {queue: nil},
		"own request": {
			sent: "a", queue: []queued{{name: "a", of: of, position: 1, requires: mine("")}}, writes: filled,
		},
		"those behind it move": {
			sent: "a",
			queue: []queued{
				{name: "c", of: of, position: 3, requires: ""},
				{name: "a", of: of, position: 1, requires: mine("")},
				{name: "b", of: of, position: 2, requires: ""},
			},
			writes: filled + ", b 1 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"gaps close": {
			sent: "a",
			queue: []queued{
				{name: "a", of: of, position: 4, requires: mine("")},
				{name: "b", of: of, position: 9, requires: ""},
				{name: "c", of: of, position: 0, requires: ""},
			},
			writes: filled + ", b 1 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"requested since": {
			queue: []queued{{name: "a", of: of, position: 1, requires: ""}}, says: "read the queue again",
		},
		"requested by oneself": {
			queue: []queued{{name: "a", of: of, position: 1, requires: mine("")}}, says: "read the queue again",
		},
		"closed since": {sent: "a", queue: nil, says: "no longer"},
		"no longer first": {
			sent: "a",
			queue: []queued{
				{name: "b", of: of, position: 1, requires: ""}, {name: "a", of: of, position: 2, requires: mine("")},
			},
			says: "no longer",
		},
		"another patron's": {
			sent: "a", queue: []queued{{name: "a", of: of, position: 1, requires: ""}}, says: "another patron's",
		},
		"behind without a place": {
			sent: "a",
			queue: []queued{
				{name: "b", of: of, position: 0, requires: ""}, {name: "a", of: of, position: 7, requires: mine("")},
			},
			writes: filled + ", b 1 Open - Not yet filled",
		},

		"of the title, title level off": {
			queue: []queued{{name: "a", of: of, position: 1, requires: "{" + title + "}"}},
		},
		"of the title": {
			titles: true, queue: []queued{{name: "a", of: unassigned, position: 1, requires: "{" + title + "}"}},
			says: "read the queue again",
		},
		"own one of the title": {
			sent: "a", titles: true, queue: []queued{{name: "a", of: unassigned, position: 1, requires: mine("," + title)}},
			writes: filled,
		},
		"another copy is set aside": {
			titles: true, queue: []queued{{name: "a", of: otherCopy, position: 1, requires: "{" + title + "}"}},
		},
		"another copy was called back": {
			titles: true,
			queue:  []queued{{name: "a", of: otherCopy, position: 1, requires: `{"requestType":"Recall",` + title + "}"}},
		},
		"another copy is asked for": {
			titles: true, queue: []queued{{name: "a", of: otherCopy, position: 1, requires: ""}},
		},
		"this copy is paged for the title": {
			titles: true, queue: []queued{{name: "a", of: of, position: 1, requires: "{" + title + "}"}},
			says: "read the queue again",
		},
		"behind one that takes another copy": {
			sent: "a", titles: true,
			queue: []queued{
				{name: "b", of: otherCopy, position: 1, requires: ""},
				{name: "a", of: unassigned, position: 2, requires: mine("," + title)},
				{name: "c", of: otherCopy, position: 3, requires: ""},
			},
			writes: filled + ", c 2 Open - Not yet filled",
		},
		"first is of the title, another patron's": {
			sent: "b", titles: true,
			queue: []queued{
				{name: "a", of: unassigned, position: 1, requires: "{" + title + "}"},
				{name: "b", of: of, position: 2, requires: mine("")},
			},
			says: "no longer",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replace := map[string]any{"titleLevelRequests": tt.titles}
			if tt.sent != "" {
				replace["requestId"] = wishID(tt.sent)
			}
			c, err := commit.ParseCheckOut(body(t, replace))
			if err != nil {
				t.Fatal(err)
			}
			seen := commit.Seen{LockUser: patronID, Item: storedItem(t, "Available"), Queue: queue(t, tt.queue...), Now: now}
			before := fmt.Sprint(seen.Queue)
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
			if after := fmt.Sprint(seen.Queue); after != before {
				t.Errorf("what was read has been changed: %s, was %s", after, before)
			}
		})
	}
}
