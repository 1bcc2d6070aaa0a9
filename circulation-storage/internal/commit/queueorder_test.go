package commit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// order parses an order of the item's queue, or with of the title's; each of places is
// "name newPosition" or "name newPosition sawPosition".
func order(t *testing.T, of string, places ...string) commit.QueueOrder {
	t.Helper()
	var list []string
	for _, p := range places {
		var name string
		var position, saw int
		if n, err := fmt.Sscan(p, &name, &position, &saw); n < 2 {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf(`{"id":%q,"newPosition":%d,"position":%d}`, wishID(name), position, saw))
	}
	o, err := commit.ParseQueueOrder(fmt.Appendf(nil, `{%s,"reorderedQueue":[%s]}`, of, strings.Join(list, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestQueueOrder_Decide(t *testing.T) {
	t.Parallel()
	item, title := fmt.Sprintf(`"itemId":%q`, itemID), fmt.Sprintf(`"instanceId":%q`, instanceID)
	one := func(name string, position int, more string) queued {
		return queued{name, itemID.String(), position, inTitle(more)}
	}
	const isPage = `,"requestType":"Page"`
	three := []queued{one("c", 3, ""), one("a", 1, ""), one("b", 2, "")}
	begun := []queued{one("a", 1, ","+waiting), one("b", 2, ""), one("c", 3, "")}
	paging := []queued{one("a", 1, isPage), one("b", 2, ""), one("c", 3, "")}
	const (
		sequence = "Positions must have sequential order."
		first    = "Requests can not be displaced from position 1 when fulfillment begun."
		top      = "Requests can not be displaced from top positions when fulfillment begun."
		pages    = "Page requests can not be displaced from position 1."
	)
	tests := map[string]struct {
		of     string
		places []string
		queue  []queued
		code   fault.Code
		says   string
		writes string
	}{
		"turned": {
			of: item, places: []string{"a 3", "b 2", "c 1"}, queue: three,
			writes: "a 3 Open - Not yet filled, c 1 Open - Not yet filled",
		},
		"one moves up": {
			of: title, places: []string{"a 2 1", "b 3 2", "c 1 3"}, queue: three,
			writes: "a 2 Open - Not yet filled, b 3 Open - Not yet filled, c 1 Open - Not yet filled",
		},
		"as it is":                  {of: item, places: []string{"a 1", "b 2", "c 3"}, queue: three},
		"as it is, seen in another": {of: item, places: []string{"a 1 2", "b 2 1", "c 3 3"}, queue: three},
		"ordered by others before": {
			of: item, places: []string{"a 3 1", "b 2 1", "c 1 3"}, queue: three, code: fault.RequestChanged,
			says: "read it again",
		},
		"of an empty queue": {
			of: item, places: []string{"a 1"}, code: fault.NotFound,
			says: fmt.Sprintf(`Item record with ID "%s" cannot be found`, itemID),
		},
		"of an unknown title": {of: title, code: fault.NotFound, says: "Instance record with ID"},
		"a position twice": {
			of: item, places: []string{"a 1", "b 1", "c 2"}, queue: three, code: fault.Invalid, says: sequence,
		},
		"a position left out": {
			of: item, places: []string{"a 1", "b 2", "c 4"}, queue: three, code: fault.Invalid, says: sequence,
		},
		"from 0": {
			of: item, places: []string{"a 0", "b 1", "c 2"}, queue: three, code: fault.Invalid, says: sequence,
		},
		"one too few": {
			of: item, places: []string{"a 1", "b 2"}, queue: three, code: fault.Invalid, says: schemas.QueueOutdated,
		},
		"one too many": {
			of: item, places: []string{"a 1", "b 2", "c 3", "d 4"}, queue: three, code: fault.Invalid,
			says: schemas.QueueOutdated,
		},
		"all of them, and one again": {
			of: item, places: []string{"a 1", "b 2", "c 3", "b 4"}, queue: three, code: fault.Invalid,
			says: schemas.QueueOutdated,
		},
		"another one": {
			of: item, places: []string{"a 1", "b 2", "d 3"}, queue: three, code: fault.Invalid, says: schemas.QueueOutdated,
		},
		"one twice": {
			of: item, places: []string{"a 1", "b 2", "b 3"}, queue: three, code: fault.Invalid, says: schemas.QueueOutdated,
		},
		"none": {of: item, queue: three, code: fault.Invalid, says: schemas.QueueOutdated},
		"before one that waits": {
			of: item, places: []string{"a 2", "b 1", "c 3"}, queue: begun, code: fault.Invalid, says: first,
		},
		"before one that waits, title": {
			of: title, places: []string{"a 2", "b 1", "c 3"}, queue: begun, code: fault.Invalid, says: top,
		},
		"behind one that waits": {
			of: title, places: []string{"a 1", "b 3", "c 2"}, queue: begun,
			writes: "b 3 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"behind one that waits, item": {
			of: item, places: []string{"a 1", "b 3", "c 2"}, queue: begun,
			writes: "b 3 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"behind a page": {
			of: item, places: []string{"a 1", "b 3", "c 2"}, queue: paging,
			writes: "b 3 Open - Not yet filled, c 2 Open - Not yet filled",
		},
		"two that wait change places": {
			of: title, places: []string{"a 2", "b 1", "c 3"}, queue: []queued{begun[0], one("b", 2, ","+waiting), begun[2]},
			writes: "a 2 Open - Awaiting pickup, b 1 Open - Awaiting pickup",
		},
		"before a page": {
			of: item, places: []string{"a 2", "b 1", "c 3"}, queue: paging, code: fault.Invalid, says: pages,
		},
		"before a page of a title": {
			of: title, places: []string{"a 2", "b 1", "c 3"}, queue: paging,
			writes: "a 2 Open - Not yet filled, b 1 Open - Not yet filled",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order(t, tt.of, tt.places...)
			got := wantMade(t, o, commit.Seen{TitlesOn: o.ItemID == uuid.Nil, Queue: queue(t, tt.queue...)}, "",
				madeOf{code: tt.code, says: tt.says, writes: tt.writes})
			if tt.code == "" && len(got.Queue) != len(tt.queue) {
				t.Errorf("the answer has %d requests, want %d", len(got.Queue), len(tt.queue))
			}
			for i, r := range got.Queue {
				if fmt.Sprint(r["position"]) != fmt.Sprint(i+1) {
					t.Errorf("request %d of the answer has the position %v", i+1, r["position"])
				}
			}
		})
	}
	turned := commit.Seen{Queue: queue(t, three...)} // requests for titles were turned off
	if _, err := order(t, title, "a 1", "b 2", "c 3").Decide(ctx(t), turned); !fault.Is(err, fault.RequestChanged) {
		t.Errorf("of a title: got %v, want %s", err, fault.RequestChanged)
	}
	for _, of := range []string{`"itemId":"` + itemID.String() + `",` + title, `"x":1`} {
		if _, err := commit.ParseQueueOrder(fmt.Appendf(nil, `{%s,"reorderedQueue":[]}`, of)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", of, err)
		}
	}
}
