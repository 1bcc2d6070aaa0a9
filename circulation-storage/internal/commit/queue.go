package commit

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// closedFilled is the status of a request whose patron got the item.
const closedFilled = "Closed - Filled"

// Queue is the open requests that one item, or one title, has. The store may hand
// it over in any order: position decides.
type Queue []records.Record

// sorted is the queue in the order of positions. A request without one comes
// last, as if it had just been placed.
func (q Queue) sorted() Queue {
	return slices.SortedFunc(slices.Values(q), func(a, b records.Record) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.ID(), b.ID()))
	})
}

func order(request records.Record) int {
	if n := position(request); n > 0 {
		return n
	}
	return math.MaxInt
}

// position is 0 when the request has none.
func position(request records.Record) int {
	if n, ok := request["position"].(int); ok {
		return n
	}
	return integer(request["position"])
}

// first returns the first request that the item can fill, nil when there is none.
func (q Queue) first(item records.Record, titles bool) records.Record {
	queued := make([]schemas.QueuedRequest, len(q))
	for i, r := range q {
		// Without the instance: a queue of a title has no other's requests.
		queued[i] = schemas.QueuedRequest{
			ID: r.ID(), ItemID: r.Text("itemId"), RequestType: r.Text("requestType"), RequestLevel: r.Text("requestLevel"),
			Status: r.Text("status"), Position: position(r),
		}
	}
	first, ok := schemas.FirstFilledBy(queued, item.ID(), "", titles)
	if !ok {
		return nil
	}
	return q[place(q, first.ID)]
}

// expect returns the first request that the item can fill, provided that it is the
// one which the caller saw; Nil stands for none. Fault: RequestChanged.
func (q Queue) expect(saw uuid.UUID, item records.Record, titles bool) (records.Record, error) {
	first := q.first(item, titles)
	switch {
	case id(first, "id") == saw:
		return first, nil
	case saw == uuid.Nil:
		return nil, fault.New(fault.RequestChanged, "The item is requested (%s is first in the queue): read the queue again", first.ID())
	}
	return nil, fault.New(fault.RequestChanged, "The request %s is not, or no longer, the first open one that the item can fill: read the queue again", saw)
}

// fill is the queue after the item was lent to whoever made the request. The
// request stays in what is returned, closed and without a position.
func (q Queue) fill(request, item records.Record) Queue {
	filled := assign(request, item)
	filled["status"] = closedFilled
	delete(filled, "position")
	queue := q.sorted()
	own := place(queue, request.ID())
	return append(slices.Delete(queue, own, own+1).numbered(), filled)
}

// serve is the queue after an item was set aside for the request, which is given
// as it is then: it goes before all that nothing was set aside for.
func (q Queue) serve(request records.Record) Queue {
	queue := q.sorted()
	own := place(queue, request.ID())
	rest := slices.Delete(queue, own, own+1)
	at := slices.IndexFunc(rest, func(r records.Record) bool { return r.Text("status") == schemas.RequestNotYetFilled })
	if at < 0 || at > own {
		at = own
	}
	return slices.Insert(rest, at, request).numbered()
}

func place(q Queue, id string) int {
	return slices.IndexFunc(q, func(r records.Record) bool { return r.ID() == id })
}

// numbered gives the positions 1, 2, …; a record that has its own stays the same.
func (q Queue) numbered() Queue {
	for i, request := range q {
		if position(request) == i+1 {
			continue
		}
		q[i] = clone(request)
		q[i]["position"] = i + 1
	}
	return q
}

// assign is a copy of the request that names the item as the one which fills it.
func assign(request, item records.Record) records.Record {
	request = clone(request)
	request["itemId"] = item.ID()
	if holdings := item.Text("holdingsRecordId"); holdings != "" {
		request["holdingsRecordId"] = holdings
	}
	return request
}

// completeRequests returns those requests of a queue that differ from what is
// stored, ready to be written.
func (m Moment) completeRequests(ctx context.Context, stored, after Queue) ([]records.Record, error) {
	var changed []records.Record
	for _, request := range after {
		before := stored[place(stored, request.ID())]
		if reflect.DeepEqual(request, before) {
			continue
		}
		if err := m.complete(ctx, records.Request(), request, before); err != nil {
			return nil, err
		}
		changed = append(changed, request)
	}
	return changed, nil
}

// The actions that a session records.
const (
	didCheckOut = "Check-out"
	didCheckIn  = "Check-in"
)

// newSession records what a patron did at a desk (FOLIO's patron action sessions),
// for the notice that sums it up.
func newSession(action, sessionID string, loan records.Record) records.Record {
	session := records.Record{
		"id": uuid.NewString(), "patronId": loan.Text("userId"), "loanId": loan.ID(), "actionType": action,
	}
	if sessionID != "" {
		session["sessionId"] = sessionID
	}
	return session
}
