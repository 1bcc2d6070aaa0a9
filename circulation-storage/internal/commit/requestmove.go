package commit

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// RequestMove gives a request that is not yet filled another item of its instance, from
// ParseRequestMove.
type RequestMove struct {
	To         Placement // the request as it is at its new item
	FromItemID uuid.UUID // as the caller saw it; Nil for none
}

// ParseRequestMove reads the body of POST /request-storage/moves. Faults: Malformed for bad JSON,
// Invalid for the rest, with place and rule.
func ParseRequestMove(body []byte) (RequestMove, error) {
	doc, err := parseBody("request-move", body)
	if err != nil {
		return RequestMove{}, err
	}
	m := RequestMove{FromItemID: readID(doc, "fromItemId")}
	m.To, err = ParsePlacement(body)
	return m, err
}

// Decide judges a move. The request goes to the end of its queue, or of the new item's queue, and
// those behind its old place move up. Its items and its loan change as by a cancellation and a
// placement. A repeat changes nothing, wherever the request is now. A request that is at the new item
// already, with the same type, was moved before.
// Faults: NotFound, RequestChanged, ItemChanged, LoanChanged, Invalid.
func (m RequestMove) Decide(ctx context.Context, seen Seen) (Change, error) {
	if moved, err := m.check(seen); moved || err != nil {
		return Change{Request: seen.Request, Item: seen.findItem(readID(seen.Request, "itemId")), Repeated: true}, err
	}
	request := assignItem(seen.Request, seen.findItem(m.To.ItemID))
	request["requestType"] = m.To.request.Text("requestType")
	for _, key := range [...]string{"item", "searchIndex"} {
		if copied, ok := m.To.request[key]; ok { // with the names of the location and the pickup place
			request[key] = copied
		}
	}
	after := seen.Queue.leave(seen.Request, m.To.TitleLevel, seen.OtherTitles)
	if !m.To.TitleLevel {
		after = append(after, slices.DeleteFunc(seen.Queue.sorted(), func(r records.Record) bool { return readID(r, "itemId") != m.To.ItemID })...)
	}
	if err := newQueued(request).RefuseRepeated(after.list(), m.To.TitleLevel).Err(); err != nil {
		return Change{}, err
	}
	request["position"] = seen.OtherTitles.nextFree(m.To.ItemID, after.lastPosition(request, m.To.TitleLevel))
	after = append(after, request)
	return m.complete(ctx, seen, request, after)
}

// check refuses a request that cannot be moved, and reports whether it was moved before.
func (m RequestMove) check(seen Seen) (moved bool, err error) {
	id := m.To.RequestID
	repeated, err := seen.findRequestRepeat(m.To.ID, id)
	switch stored := seen.Request; {
	case err != nil:
		return false, err
	case stored == nil:
		return false, newNoRequest(id)
	case repeated:
		return true, nil
	case !isOpenRequest(stored):
		return false, newAlreadyClosed(id)
	case readID(stored, "itemId") == m.To.ItemID && stored.Text("requestType") == m.To.request.Text("requestType"):
		return true, nil
	case readID(stored, "instanceId") != m.To.InstanceID || readID(stored, "itemId") != m.FromItemID || indexOf(seen.Queue, stored.ID()) < 0:
		return false, newRequestMoved(id)
	case stored.Text("status") != schemas.RequestNotYetFilled:
		return false, refuse("REQUEST_NOT_MOVABLE", "Only a request that is not yet filled can be moved", fault.Param("id", id.String()))
	case m.FromItemID == m.To.ItemID: // as in FOLIO, also with another type
		return false, newQueued(stored).RefuseRepeated(Queue{stored}.list(), m.To.TitleLevel).Err()
	case seen.findItem(m.To.ItemID) == nil:
		return false, newNoItem("request.itemId", m.To.ItemID)
	}
	if err := checkTitles(m.To.TitleLevel, seen.TitlesOn); err != nil {
		return false, err
	}
	return false, checkVersion(seen.findItem(m.To.ItemID), m.To.ItemVersion)
}

// complete makes everything ready to be written that the move changes.
func (m RequestMove) complete(ctx context.Context, seen Seen, request records.Record, after Queue) (Change, error) {
	change := Change{
		Request: request, Item: seen.findItem(m.To.ItemID), Requests: seen.Queue.listChanged(after), Items: freeItem(seen.findItem(m.FromItemID), after, seen.OtherTitles),
		Events: []Event{newRequestChangeEvent(ctx, "REQUEST_MOVED_EVENT", seen.Request, request)},
	}
	change, err := m.To.changeOthers(ctx, change, seen.Loan)
	if err != nil {
		return Change{}, err
	}
	return change.complete(ctx, seen.Now, seen.Loan, seen.Items, seen.Queue)
}

// findItem returns one of the items, nil if it does not exist.
func (s Seen) findItem(id uuid.UUID) records.Record { return find(s.Items, id.String()) }

// lastPosition returns the position of the last request in the queue that the request joins.
func (q Queue) lastPosition(request records.Record, titles bool) int {
	last := 0
	for _, r := range q {
		if titles || readID(r, "itemId") == readID(request, "itemId") {
			last = max(last, readPosition(r))
		}
	}
	return last
}
