package commit

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// closedFilled is the status of a request whose patron got the item.
const closedFilled = "Closed - Filled"

// Queue is the open requests of one item or one title, in any order.
type Queue []records.Record

// sorted returns the queue in the order of positions. A request without a position is
// last, as a new request is.
func (q Queue) sorted() Queue {
	return slices.SortedFunc(slices.Values(q), func(a, b records.Record) int {
		return cmp.Or(cmp.Compare(readOrder(a), readOrder(b)), cmp.Compare(a.ID(), b.ID()))
	})
}

func readOrder(request records.Record) int {
	if n := readPosition(request); n > 0 {
		return n
	}
	return math.MaxInt
}

// readPosition returns 0 for a request without a position.
func readPosition(request records.Record) int {
	if n, ok := request["position"].(int); ok {
		return n
	}
	return readInteger(request["position"])
}

// chooser is schemas.FirstLentTo for a check-out, else schemas.FirstFilledBy.
type chooser func(queue []schemas.QueuedRequest, itemID, instanceID string, titles bool) (schemas.QueuedRequest, bool)

// findFirst returns the first request that the item can fill, nil if there is none.
func (q Queue) findFirst(item records.Record, titles bool, choose chooser) records.Record {
	queued := q.list()
	for i := range queued {
		queued[i].InstanceID = "" // all requests of a title's queue have the same
	}
	first, ok := choose(queued, item.ID(), "", titles)
	if !ok {
		return nil
	}
	return q[indexOf(q, first.ID)]
}

// list returns the queue as circulation judges it.
func (q Queue) list() []schemas.QueuedRequest { return convert.All(q, newQueued) }

func newQueued(r records.Record) schemas.QueuedRequest {
	return schemas.QueuedRequest{
		ID: r.ID(), RequesterID: r.Text("requesterId"), ItemID: r.Text("itemId"), InstanceID: r.Text("instanceId"),
		RequestType: r.Text("requestType"), RequestLevel: r.Text("requestLevel"), Status: r.Text("status"), Position: readPosition(r),
	}
}

// expectFirst returns the first request that the item can fill, if it is the one that
// the caller saw; Nil means none. Fault: RequestChanged.
func (q Queue) expectFirst(saw uuid.UUID, item records.Record, titles bool, choose chooser) (records.Record, error) {
	first := q.findFirst(item, titles, choose)
	switch {
	case readID(first, "id") == saw:
		return first, nil
	case saw == uuid.Nil:
		return nil, fault.New(fault.RequestChanged, "The item is requested (%s is first in the queue): read the queue again", first.ID())
	}
	return nil, fault.New(fault.RequestChanged, "The request %s is not, or no longer, the first open one that the item can fill: read the queue again", saw)
}

// isRecalled reports whether an open recall of the item waits besides the filled request.
func (q Queue) isRecalled(itemID, filled uuid.UUID) bool {
	return slices.ContainsFunc(q.list(), func(r schemas.QueuedRequest) bool {
		return r.Recalls(itemID.String()) && r.ID != filled.String()
	})
}

// fillRequest returns the queue after the item was lent to the requester. The filled
// request is last, closed and without a position.
func (q Queue) fillRequest(request, item records.Record, otherTitles Queue) Queue {
	filled := assignItem(request, item)
	filled["status"] = closedFilled
	delete(filled, "position")
	queue := q.sorted()
	own := indexOf(queue, request.ID())
	return append(slices.Delete(queue, own, own+1).renumber(otherTitles), filled)
}

// serveRequest returns the queue after an item was set aside for the changed request. It
// goes before all requests without an item.
func (q Queue) serveRequest(request records.Record, otherTitles Queue) Queue {
	queue := q.sorted()
	own := indexOf(queue, request.ID())
	rest := slices.Delete(queue, own, own+1)
	at := slices.IndexFunc(rest, func(r records.Record) bool { return r.Text("status") == schemas.RequestNotYetFilled })
	if at < 0 || at > own {
		at = own
	}
	return slices.Insert(rest, at, request).renumber(otherTitles)
}

// checkTitles refuses a commit whose caller judged another queue, because the setting for titles
// changed.
func checkTitles(saw, on bool) error {
	if saw != on {
		return fault.New(fault.RequestChanged, "Requests for titles were turned on or off: read the setting and the queue again")
	}
	return nil
}

func indexOf(q []records.Record, id string) int {
	return slices.IndexFunc(q, func(r records.Record) bool { return r.ID() == id })
}

// renumber sets the positions 1, 2, … without those that requests of other titles have for the same
// items. It copies the records that it changes.
func (q Queue) renumber(otherTitles Queue) Queue {
	position := 0
	for i, request := range q {
		position = otherTitles.nextFree(readID(request, "itemId"), position)
		if readPosition(request) == position {
			continue
		}
		q[i] = clone(request)
		q[i]["position"] = position
	}
	return q
}

// nextFree returns the first position behind that one which no request for the item has.
func (q Queue) nextFree(itemID uuid.UUID, position int) int {
	taken := func(r records.Record) bool { return readPosition(r) == position && readID(r, "itemId") == itemID }
	for position++; slices.ContainsFunc(q, taken); {
		position++
	}
	return position
}

// assignItem returns a copy of the request that names the item, and has copies of its fields.
func assignItem(request, item records.Record) records.Record {
	request = clone(request)
	if readID(request, "itemId") != readID(item, "id") {
		copyItem(request, item)
	}
	request["itemId"] = item.ID()
	if holdings := item.Text("holdingsRecordId"); holdings != "" {
		request["holdingsRecordId"] = holdings
	}
	return request
}

// copyItem replaces the copies of another item by which requests are shown and searched.
func copyItem(request, item records.Record) {
	copied, searched, parts := records.Record{}, records.Record{}, records.Record{}
	copied.Set("barcode", item.Text("barcode"))
	copied.Set("itemEffectiveLocationId", item.Text("effectiveLocationId"))
	copied.Set("loanTypeId", cmp.Or(item.Text("temporaryLoanTypeId"), item.Text("permanentLoanTypeId")))
	searched.Set("shelvingOrder", cmp.Or(item.Text("effectiveShelvingOrder"), item.Text("effectiveCallNumberComponents.callNumber")))
	searched.Set("pickupServicePointName", request.Text("searchIndex.pickupServicePointName"))
	for _, part := range [...]string{"callNumber", "prefix", "suffix"} {
		parts.Set(part, item.Text("effectiveCallNumberComponents."+part))
	}
	if len(parts) > 0 {
		searched["callNumberComponents"] = map[string]any(parts)
	}
	request["item"] = map[string]any(copied)
	if delete(request, "searchIndex"); len(searched) > 0 {
		request["searchIndex"] = map[string]any(searched)
	}
}

// listChanged returns the requests that differ from those of the queue.
func (q Queue) listChanged(after Queue) []records.Record {
	return slices.DeleteFunc(slices.Clone(after), func(r records.Record) bool { return reflect.DeepEqual(r, find(q, r.ID())) })
}

// The actions that a session records.
const (
	didCheckOut = "Check-out"
	didCheckIn  = "Check-in"
)

// listStatuses returns which of the requests got another status; nil if none did.
func (q Queue) listStatuses(changed []records.Record) any {
	var list []map[string]any
	for _, r := range changed {
		if before := find(q, r.ID()).Text("status"); before != r.Text("status") {
			entry := map[string]any{
				"id": r.ID(), "requestType": r.Text("requestType"), "oldRequestStatus": before, "newRequestStatus": r.Text("status"),
				"pickUpServicePoint": r.Text("searchIndex.pickupServicePointName"),
			}
			maps.DeleteFunc(entry, isEmpty)
			list = append(list, entry)
		}
	}
	if list == nil {
		return nil
	}
	return list
}

// listMoved returns the requests in their new order, with their positions before.
func (q Queue) listMoved(order Queue) []records.Record {
	list := make([]records.Record, len(order))
	for i, r := range order {
		list[i] = clone(r)
		list[i]["previousPosition"] = readPosition(find(q, r.ID()))
	}
	return list
}

// newSession returns a patron action session, which FOLIO sums up in notices.
func newSession(action, sessionID string, loan records.Record) records.Record {
	session := records.Record{
		"id": uuid.NewString(), "patronId": loan.Text("userId"), "loanId": loan.ID(), "actionType": action,
	}
	session.Set("sessionId", sessionID)
	return session
}
