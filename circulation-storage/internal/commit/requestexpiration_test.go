package commit_test

import (
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
)

func TestExpiredQueue_Decide(t *testing.T) {
	t.Parallel()
	of := itemID.String()
	const (
		past       = `,"requestExpirationDate":"2026-03-04T05:06:07Z"` // 89 ms before now
		future     = `,"requestExpirationDate":"2026-03-04T05:06:08Z"`
		shelfPast  = `,"holdShelfExpirationDate":"2026-03-04T00:00:00-05:00"`
		shelfHolds = `,"holdShelfExpirationDate":"2026-03-04T23:59:59+00:00"`
		moving     = `,"status":"Open - In transit"`
		bringing   = `,"status":"Open - Awaiting delivery"`
	)
	one := func(name, of string, position int, more string) queued {
		return queued{name, of, position, inTitle(more)}
	}
	tests := map[string]struct {
		titles bool
		items  []uuid.UUID
		queue  []queued
		item   string
		closed int
		writes string
		freed  bool
	}{
		"none has expired": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, future), one("b", of, 2, "")}, item: "Paged",
		},
		"the first": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, past), one("b", of, 2, future)}, item: "Paged",
			closed: 1, writes: "a <nil> Closed - Unfilled, b 1 Open - Not yet filled",
		},
		"the only page": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, past)}, item: "Paged", closed: 1,
			writes: "a <nil> Closed - Unfilled", freed: true,
		},
		"on its way": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, past+moving), one("b", of, 2, past+bringing)},
			item: "In transit", closed: 2, writes: "a <nil> Closed - Unfilled, b <nil> Closed - Unfilled",
		},
		"not fetched": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, ","+waiting+shelfPast), one("b", of, 2, "")},
			item: "Awaiting pickup", closed: 1, writes: "a <nil> Closed - Pickup expired, b 1 Open - Not yet filled",
		},
		"on the shelf for long": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, ","+waiting+shelfHolds+past)}, item: "Awaiting pickup",
		},
		"shelf without an end": {
			items: []uuid.UUID{itemID}, queue: []queued{one("a", of, 1, ","+waiting+past)}, item: "Awaiting pickup",
		},
		"of a title": {
			titles: true, items: []uuid.UUID{itemID}, queue: []queued{
				one("a", otherCopy, 1, ""), one("b", of, 2, past), one("c", unassigned, 3, past+","+title),
				one("d", otherCopy, 4, ""),
			},
			item: "Paged", closed: 2, writes: "b <nil> Closed - Unfilled, c <nil> Closed - Unfilled, d 2 Open - Not yet filled",
			freed: true,
		},
		"of a title, moved since": {
			titles: true, items: []uuid.UUID{itemID}, queue: []queued{one("a", otherCopy, 1, past), one("b", of, 2, "")},
			item: "Paged",
		},
		"no item, items have a queue": {
			queue:  []queued{one("a", of, 1, past), one("b", unassigned, 1, past+","+title), one("c", unassigned, 2, ","+title)},
			closed: 1, writes: "b <nil> Closed - Unfilled, c 1 Open - Not yet filled",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := commit.Seen{TitlesOn: tt.titles, Queue: queue(t, tt.queue...)}
			if tt.item != "" {
				seen.Items = []records.Record{storedItem(t, tt.item)}
			}
			e := commit.ExpiredQueue{InstanceID: instanceID, ItemIDs: tt.items, TitleLevel: tt.titles}
			got := wantMade(t, e, seen, "", madeOf{writes: tt.writes, items: becomes(tt.freed)})
			if got.Closed != tt.closed {
				t.Errorf("got %d closed, want %d", got.Closed, tt.closed)
			}
			for _, r := range got.Requests {
				if noted := r["awaitingPickupRequestClosedDate"] != nil; noted != (r.Text("status") == "Closed - Pickup expired") {
					t.Errorf("%s: got the date of the shelf's clearance: %t", r.Text("name"), noted)
				}
			}
		})
	}
}
