package commit

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// Placement is a request to append to its queue, from ParsePlacement.
type Placement struct {
	ID          uuid.UUID // of this change, chosen by the caller; a repeat has the same one; Nil for none
	RequestID   uuid.UUID // chosen by the caller; a repeat has the same one
	RequesterID uuid.UUID
	InstanceID  uuid.UUID
	ItemID      uuid.UUID // Nil for a request that any copy can fill
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// TitleLevel makes the requests of the instance the queue.
	TitleLevel bool

	request records.Record
	recall  *recall // nil unless the request recalls a loan
}

// The statuses of an item before and after a page.
const (
	available = "Available"
	paged     = "Paged"
)

// ParsePlacement reads the body of POST /request-storage/placements. Faults: Malformed
// for bad JSON, Invalid for the rest, with place and rule.
func ParsePlacement(body []byte) (Placement, error) {
	doc, err := parseBody("placement", body)
	if err != nil {
		return Placement{}, err
	}
	request := doc.Object("request")
	p := Placement{
		ID: readID(doc, "id"), RequestID: readID(request, "id"), RequesterID: readID(request, "requesterId"),
		InstanceID: readID(request, "instanceId"), ItemID: readID(request, "itemId"),
		ItemVersion: readInteger(doc["itemVersion"]), TitleLevel: doc["titleLevelRequests"] == true,
		request: request,
	}
	if _, ok := doc["itemVersion"]; ok != (p.ItemID != uuid.Nil) {
		return Placement{}, newInvalid("itemVersion goes with request.itemId", "itemVersion", request.Text("itemId"))
	}
	if !p.TitleLevel && request.Text("requestLevel") == titleLevel {
		return Placement{}, newInvalid("request.requestLevel must be Item while there are no title-level requests", "request.requestLevel", titleLevel)
	}
	if p.recall = readRecall(doc.Object("recall")); p.recall != nil && (p.ItemID == uuid.Nil || request.Text("requestType") != schemas.RequestRecall) {
		return Placement{}, newInvalid("recall goes with a request.itemId and the request.requestType Recall", "recall.loanId", p.recall.loanID.String())
	}
	request["id"] = p.RequestID.String()
	return p, nil
}

// titleLevel is the requestLevel of a request that any copy of a title can fill.
const titleLevel = "Title"

// Decide judges a placement. A request that was placed before and deleted since is not placed again.
// Faults: NotFound for that; ItemChanged, LoanChanged, RequestChanged, Invalid.
func (p Placement) Decide(ctx context.Context, seen Seen) (Change, error) {
	repeated, err := seen.findRequestRepeat(p.ID, p.RequestID)
	switch {
	case err != nil:
		return Change{}, err
	case seen.Request != nil:
		return p.repeat(seen)
	case repeated:
		return Change{}, newNoRequest(p.RequestID)
	}
	if err := checkTitles(p.TitleLevel, seen.TitlesOn); err != nil {
		return Change{}, err
	}
	switch {
	case !seen.Instance:
		return Change{}, newInvalid("there is no instance with this id", "request.instanceId", p.InstanceID.String())
	case p.ItemID != uuid.Nil && seen.Item == nil:
		return Change{}, newNoItem("request.itemId", p.ItemID)
	case p.ItemID != uuid.Nil:
		if err := checkVersion(seen.Item, p.ItemVersion); err != nil {
			return Change{}, err
		}
	}
	// Circulation answers this refusal as it is, so it has FOLIO's form there.
	if err := newQueued(p.request).RefuseRepeated(seen.Queue.list(), p.TitleLevel).Err(); err != nil {
		return Change{}, err
	}
	return p.appendRequest(ctx, seen)
}

func (p Placement) repeat(seen Seen) (Change, error) {
	if readID(seen.Request, "requesterId") != p.RequesterID || readID(seen.Request, "instanceId") != p.InstanceID {
		return Change{}, newInvalid("request.id is already that of another request", "request.id", p.RequestID.String())
	}
	return Change{Request: seen.Request, Item: seen.Item, Repeated: true}, nil
}

// appendRequest puts the request at the end of the queue.
func (p Placement) appendRequest(ctx context.Context, seen Seen) (Change, error) {
	change := Change{Request: clone(p.request), Item: seen.Item}
	change.Request["status"] = schemas.RequestNotYetFilled
	change.Request["position"] = seen.OtherTitles.nextFree(p.ItemID, seen.Queue.lastPosition(nil, true))
	change.Events = []Event{newRequestEvent(ctx, "REQUEST_CREATED_EVENT", change.Request, map[string]any{"created": change.Request})}
	change, err := p.changeOthers(ctx, change, seen.Loan)
	if err != nil {
		return Change{}, err
	}
	return change.complete(ctx, seen.Now, seen.Loan, []records.Record{seen.Item}, nil)
}

// changeOthers adds what the request changes. A page of an available item sets the item's status. A hold
// and a recall change the loan of their item.
func (p Placement) changeOthers(ctx context.Context, change Change, stored records.Record) (Change, error) {
	loan, recalled, err := p.changeLoan(ctx, change.Item, stored)
	if err != nil {
		return Change{}, err
	}
	change.Loan, change.Events = loan, append(change.Events, recalled...)
	if p.request.Text("requestType") == schemas.RequestPage && change.Item.Text("status.name") == available {
		change.setItem(withStatus(change.Item, paged))
	}
	return change, nil
}
