package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// MoveRequest is the body of POST /circulation/requests/{id}/move. Unknown properties are ignored.
type MoveRequest struct {
	DestinationItemID string `json:"destinationItemId"`
	RequestType       string `json:"requestType"` // "" keeps the type
}

// Move gives a request that is not yet filled another item of its instance, and returns it as
// stored. It goes to the end of the item's queue. At an available item it becomes a page. The new
// item is judged as for a new request; a recall changes the due date of its loan.
//
// Faults: those of Create; NotFound; Invalid for a request that is closed or on its way.
func (s *Service) Move(ctx context.Context, id string, m MoveRequest) (json.RawMessage, error) {
	if err := m.check().Err(); err != nil {
		return nil, err
	}
	moved, err := library.RetryChanged(func() (schemas.PlacedRequest, error) { return s.move(ctx, id, m) })
	return moved.Request, err
}

func (m MoveRequest) check() (wrong fault.List) {
	wrong = library.CheckUUID("destinationItemId", m.DestinationItemID)
	if kinds := []string{"", schemas.RequestPage, schemas.RequestHold, schemas.RequestRecall}; !slices.Contains(kinds, m.RequestType) {
		wrong = append(wrong, fault.Refusal("", fmt.Sprintf("requestType must be one of the following: %q", kinds[1:]), newParameter("requestType", m.RequestType)))
	}
	return wrong
}

func (s *Service) move(ctx context.Context, id string, m MoveRequest) (schemas.PlacedRequest, error) {
	stored, err := s.readStored(ctx, id)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	w, err := m.makeWish(stored)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if w.titleLevel, err = s.Library.TitleLevelRequests(ctx); err != nil {
		return schemas.PlacedRequest{}, err
	}
	was, err := readQueued(stored)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if err := w.checkMovable(was).Err(); err != nil {
		return schemas.PlacedRequest{}, err
	}
	f, err := s.readFacts(ctx, w)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if f.records.Item.Status.Name == library.StatusAvailable {
		w.record.RequestType, w.doc["requestType"] = schemas.RequestPage, schemas.RequestPage
	}
	if err := w.judgeMove(f, was).Err(); err != nil {
		return schemas.PlacedRequest{}, err
	}
	p, err := s.completePlacement(ctx, w, f)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	move := schemas.RequestMove{
		ID: p.ID, Request: p.Request, ItemVersion: p.ItemVersion, TitleLevel: p.TitleLevel, Recall: p.Recall, FromItemID: was.ItemID,
	}
	send := func(ctx context.Context) (schemas.PlacedRequest, error) { return s.Keeper.MoveRequest(ctx, move) }
	return library.FinishCommit(ctx, s.Log.With("change_id", move.ID, "item_id", move.FromItemID), "the move", send)
}

// makeWish returns the request as it will be at the new item.
func (m MoveRequest) makeWish(stored map[string]any) (w wish, err error) {
	w.doc = maps.Clone(stored)
	w.doc["itemId"] = m.DestinationItemID
	if m.RequestType != "" {
		w.doc["requestType"] = m.RequestType
	}
	w.record, err = readQueued(w.doc)
	return w, err
}

func readQueued(doc map[string]any) (r schemas.QueuedRequest, err error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return r, fmt.Errorf("writing the request: %w", err)
	}
	if err := jsonschema.UnmarshalExact(raw, &r); err != nil {
		return r, fmt.Errorf("reading the request: %w", err)
	}
	return r, nil
}

// checkMovable refuses a request that cannot be moved to any item (mod-circulation,
// MoveRequestService).
func (w wish) checkMovable(was schemas.QueuedRequest) fault.List {
	about := newParameter("requestId", was.ID)
	switch {
	case !was.Open():
		return fault.List{newAlreadyClosed(was.ID)}
	case was.RequestLevel == forTitle && !w.titleLevel:
		return fault.List{fault.Refusal(codeTitlesDisabled, "Can not process TLR - TLR feature is disabled", about)}
	case was.RequestLevel == forTitle && (was.RequestType == schemas.RequestHold || w.record.RequestType == schemas.RequestHold):
		return fault.List{fault.Refusal("HOLD_OF_TITLE_CANNOT_BE_MOVED", "Not allowed to move from/to Hold TLR", about)}
	case was.RequestLevel == forTitle && strings.EqualFold(was.ItemID, w.record.ItemID):
		return fault.List{fault.Refusal("MOVING_REQUEST_TO_THE_SAME_ITEM", "Not allowed to move title level page request to the same item",
			newParameter("requesterId", was.RequesterID), newParameter("instanceId", was.InstanceID))}
	}
	return nil
}

// judgeMove returns everything that is wrong with the new item. The request itself is in the queue
// only if it is there already. The patron may be inactive, as in FOLIO.
func (w wish) judgeMove(f facts, was schemas.QueuedRequest) fault.List {
	item, instanceID := f.records.Item, f.records.Holdings.InstanceID
	if item.ID != "" && !strings.EqualFold(instanceID, was.InstanceID) {
		return fault.List{fault.Refusal(codeOtherInstance, "Request can only be moved to an item with the same instance ID",
			newParameter("itemId", item.ID), newParameter("instanceId", instanceID))}
	}
	others := slices.DeleteFunc(slices.Clone(f.records.Requests), func(r schemas.QueuedRequest) bool {
		return strings.EqualFold(r.ID, was.ID) && !strings.EqualFold(was.ItemID, w.record.ItemID)
	})
	return slices.Concat(w.judgeUser(f), w.record.RefuseRepeated(others, f.records.TitleLevel), w.judgeItem(f), w.judgePolicy(f))
}
