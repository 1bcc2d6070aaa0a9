package commit

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Placement is a request to put at the end of its queue, as ParsePlacement read
// it.
type Placement struct {
	RequestID   uuid.UUID // chosen by the caller; the same one again is a repeat
	RequesterID uuid.UUID
	InstanceID  uuid.UUID
	ItemID      uuid.UUID // Nil for a request that any copy can fill
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// TitleLevel makes the requests of the instance the queue.
	TitleLevel bool

	request records.Record
}

// The item statuses that a new request asks for and gives.
const (
	available = "Available"
	paged     = "Paged"
	page      = "Page"
)

// ParsePlacement reads the body of POST /request-storage/placements. Faults:
// Malformed for what is no JSON, Invalid for everything else, each with where it
// is wrong and what is allowed.
func ParsePlacement(body []byte) (Placement, error) {
	doc, err := parse("placement", body)
	if err != nil {
		return Placement{}, err
	}
	request := doc.Object("request")
	p := Placement{
		RequestID: id(request, "id"), RequesterID: id(request, "requesterId"),
		InstanceID: id(request, "instanceId"), ItemID: id(request, "itemId"),
		ItemVersion: integer(doc["itemVersion"]), TitleLevel: doc["titleLevelRequests"] == true,
		request: request,
	}
	if _, ok := doc["itemVersion"]; ok != (p.ItemID != uuid.Nil) {
		return Placement{}, invalid("itemVersion goes with request.itemId", "itemVersion", request.Text("itemId"))
	}
	if !p.TitleLevel && request.Text("requestLevel") == titleLevel {
		return Placement{}, invalid("request.requestLevel must be Item while there are no title-level requests", "request.requestLevel", titleLevel)
	}
	request["id"] = p.RequestID.String()
	return p, nil
}

// titleLevel is the requestLevel of a request that any copy of a title can fill.
const titleLevel = "Title"

// SeenQueue is what the transaction of a placement found, the instance locked
// before the item and that before the queue.
type SeenQueue struct {
	Instance bool           // there is one with the request's instance id
	Item     records.Record // nil when the request names none, or there is none
	Request  records.Record // the one with the placement's request id; nil when there is none
	Queue    Queue          // the open requests of the item or, for TitleLevel, of the instance
	Moment
}

// Placed is what to write for a placement, or to answer again.
type Placed struct {
	Request records.Record
	Item    records.Record // nil when there is none
	Pages   bool           // the item is to be written too
	// Repeated is a placement that was committed before: nothing is to be written.
	Repeated bool
}

// Decide judges a placement. Faults: ItemChanged, Invalid.
func (p Placement) Decide(ctx context.Context, seen SeenQueue) (Placed, error) {
	if seen.Request != nil {
		return p.again(seen)
	}
	switch {
	case !seen.Instance:
		return Placed{}, invalid("there is no instance with this id", "request.instanceId", p.InstanceID.String())
	case p.ItemID != uuid.Nil && seen.Item == nil:
		return Placed{}, noItem("request.itemId", p.ItemID)
	case p.ItemID != uuid.Nil:
		if err := checkVersion(seen.Item, p.ItemVersion); err != nil {
			return Placed{}, err
		}
	}
	if err := p.checkDuplicate(seen.Queue); err != nil {
		return Placed{}, err
	}
	return p.place(ctx, seen)
}

func (p Placement) again(seen SeenQueue) (Placed, error) {
	if id(seen.Request, "requesterId") != p.RequesterID || id(seen.Request, "instanceId") != p.InstanceID {
		return Placed{}, p.RequestTaken()
	}
	return Placed{Request: seen.Request, Item: seen.Item, Repeated: true}, nil
}

// RequestTaken is the fault for a request id that another request has.
func (p Placement) RequestTaken() error {
	return invalid("request.id is already that of another request", "request.id", p.RequestID.String())
}

// checkDuplicate refuses a patron who waits already (mod-circulation,
// RequestServiceUtility).
func (p Placement) checkDuplicate(queue Queue) error {
	ofTitle := p.request.Text("requestLevel") == titleLevel
	for _, r := range queue {
		if id(r, "requesterId") != p.RequesterID {
			continue
		}
		isOfTitle := r.Text("requestLevel") == titleLevel
		var what string
		switch {
		case ofTitle && isOfTitle:
			what = "this instance"
		case ofTitle:
			what = "one of the instance's items"
		case !isOfTitle && id(r, "itemId") == p.ItemID:
			what = "this item"
		default:
			continue
		}
		// Circulation answers this as it is, so it has FOLIO's form there.
		return fault.Validation(fault.Refusal("", "This requester already has an open request for "+what,
			fault.Param("requesterId", p.RequesterID.String()), fault.Param("requestId", r.ID())))
	}
	return nil
}

// place puts the request behind all others; a page takes an available item away
// from the shelf.
func (p Placement) place(ctx context.Context, seen SeenQueue) (Placed, error) {
	last := 0
	for _, r := range seen.Queue {
		last = max(last, position(r))
	}
	placed := Placed{Request: clone(p.request), Item: seen.Item}
	placed.Request["status"] = schemas.RequestNotYetFilled
	placed.Request["position"] = last + 1
	if err := seen.complete(ctx, records.Request(), placed.Request, nil); err != nil {
		return Placed{}, err
	}
	if p.request.Text("requestType") != page || seen.Item.Text("status.name") != available {
		return placed, nil
	}
	placed.Pages, placed.Item = true, clone(seen.Item)
	placed.Item["status"] = map[string]any{"name": paged}
	if err := seen.completeItem(ctx, placed.Item, seen.Item); err != nil {
		return Placed{}, err
	}
	return placed, nil
}

// Violation is the fault for writing the request against a constraint that
// another transaction's write made bite in between; nil for one that says nothing
// to the caller.
func (p Placement) Violation(constraint string) error {
	if constraint == records.Request().Table+"_pkey" {
		return p.RequestTaken()
	}
	return nil
}

// Placements places requests for the tenant in ctx.
type Placements interface {
	// Place reads and locks what SeenQueue holds, lets p decide, and writes all of
	// what is Placed or nothing. Faults: those of Decide; RequestChanged when others
	// write the same queue all the time.
	Place(ctx context.Context, p Placement) (schemas.PlacedRequest, error)
}
