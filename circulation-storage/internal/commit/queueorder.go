package commit

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// QueueOrder puts the requests of a queue into another order, from ParseQueueOrder.
type QueueOrder struct {
	ID         uuid.UUID // chosen by the caller; a repeat has the same one; Nil for none
	ItemID     uuid.UUID // Nil for the queue of an instance
	InstanceID uuid.UUID // Nil for the queue of an item
	FirstID    uuid.UUID // the request that comes first; Nil for none

	places []place
}

// place is where a request goes.
type place struct {
	requestID uuid.UUID
	saw       int // the position that the caller saw; 0 for any
	position  int
}

// ParseQueueOrder reads the body of POST /request-storage/queue-orders. Faults: Malformed for bad
// JSON, Invalid for the rest, with place and rule.
func ParseQueueOrder(body []byte) (QueueOrder, error) {
	doc, err := parseBody("queue-order", body)
	if err != nil {
		return QueueOrder{}, err
	}
	o := QueueOrder{ID: readID(doc, "id"), ItemID: readID(doc, "itemId"), InstanceID: readID(doc, "instanceId")}
	if (o.ItemID == uuid.Nil) == (o.InstanceID == uuid.Nil) {
		return QueueOrder{}, newInvalid("itemId or instanceId is required, and not both", "itemId", doc.Text("itemId"))
	}
	list, _ := doc["reorderedQueue"].([]any)
	for _, v := range list {
		entry, _ := v.(map[string]any)
		o.places = append(o.places, place{
			requestID: readID(entry, "id"), saw: readInteger(entry["position"]), position: readInteger(entry["newPosition"]),
		})
	}
	slices.SortFunc(o.places, func(a, b place) int { return a.position - b.position })
	if len(o.places) > 0 {
		o.FirstID = o.places[0].requestID
	}
	return o, nil
}

// Decide returns the whole queue in the new order, and those of its requests that change. An order
// that the queue has already is no change, also for a caller that saw another one: it is a repeat. A
// repeat with the same id returns the queue as it is by now.
// Faults: NotFound for an empty queue; Invalid in FOLIO's words, which circulation answers as they
// are; RequestChanged if the caller saw other positions.
func (o QueueOrder) Decide(ctx context.Context, seen Seen) (Change, error) {
	repeated, err := seen.findRequestRepeat(o.ID, o.FirstID)
	switch {
	case err != nil:
		return Change{}, err
	case repeated && len(seen.Queue) > 0:
		return Change{Queue: seen.Queue.sorted(), Repeated: true}, nil
	}
	if err := checkTitles(o.InstanceID != uuid.Nil, seen.TitlesOn); err != nil {
		return Change{}, err
	}
	if err := o.check(seen.Queue); err != nil {
		return Change{}, err
	}
	var queue Queue
	stale := false
	for _, p := range o.places {
		r := seen.Queue[indexOf(seen.Queue, p.requestID.String())]
		stale = stale || p.saw != 0 && readPosition(r) != p.saw
		queue = append(queue, r)
	}
	queue = queue.renumber(seen.OtherTitles)
	changed := seen.Queue.listChanged(queue)
	switch {
	case len(changed) == 0:
		return Change{Queue: queue}, nil
	case stale:
		return Change{}, fault.New(fault.RequestChanged, "The queue of requests has changed: read it again")
	}
	event := newRequestEvent(ctx, "REQUEST_REORDERED_EVENT", queue[0], map[string]any{"reordered": seen.Queue.listMoved(queue)})
	return Change{Queue: queue, Requests: changed, Events: []Event{event}}.
		complete(ctx, seen.Now, nil, nil, seen.Queue)
}

// check refuses an order in the sequence of mod-circulation's checks (RequestQueueValidation).
func (o QueueOrder) check(queue Queue) error {
	if len(queue) == 0 {
		kind, id := "Item", o.ItemID
		if o.InstanceID != uuid.Nil {
			kind, id = "Instance", o.InstanceID
		}
		return fault.New(fault.NotFound, "%s record with ID %q cannot be found", kind, id)
	}
	for i, p := range o.places {
		if p.position != i+1 {
			return newMisplaced("Positions must have sequential order.")
		}
	}
	if !o.namesAll(queue) {
		return refuse(schemas.CodeQueueOutdated, schemas.QueueOutdated)
	}
	begun := 0
	for i, p := range o.places {
		r := queue[indexOf(queue, p.requestID.String())]
		fulfilled := r.Text("status") != schemas.RequestNotYetFilled
		switch {
		case o.ItemID != uuid.Nil && r.Text("requestType") == schemas.RequestPage && p.position != 1:
			return newMisplaced("Page requests can not be displaced from position 1.")
		case o.ItemID != uuid.Nil && fulfilled && p.position != 1:
			return newMisplaced("Requests can not be displaced from position 1 when fulfillment begun.")
		case fulfilled && begun != i:
			return newMisplaced("Requests can not be displaced from top positions when fulfillment begun.")
		case fulfilled:
			begun++
		}
	}
	return nil
}

// namesAll reports whether the order names each request of the queue once.
func (o QueueOrder) namesAll(queue Queue) bool {
	seen := map[uuid.UUID]bool{}
	for _, p := range o.places {
		if indexOf(queue, p.requestID.String()) < 0 {
			return false
		}
		seen[p.requestID] = true
	}
	return len(seen) == len(o.places) && len(seen) == len(queue)
}

func newMisplaced(message string) error {
	return refuse(string(fault.Invalid), message, fault.Parameter{Key: "newPosition"})
}
