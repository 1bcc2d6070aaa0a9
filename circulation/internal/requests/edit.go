package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Keeper keeps requests that were placed. Each change is wholly or not at all.
type Keeper interface {
	// ChangeRequest edits, closes or deletes a request. A repeat with the same id changes nothing.
	// Faults that say it did not happen: NotFound, RequestChanged, Invalid.
	ChangeRequest(ctx context.Context, c schemas.RequestChange) error
	// MoveRequest gives a request another item. A repeat with the same id changes nothing. Faults that say it did
	// not happen: NotFound, ItemChanged, LoanChanged, RequestChanged, Invalid.
	MoveRequest(ctx context.Context, m schemas.RequestMove) (schemas.PlacedRequest, error)

	// ItemQueue and TitleQueue return the open requests of an item, and of an instance.
	ItemQueue(ctx context.Context, itemID string) ([]json.RawMessage, error)
	TitleQueue(ctx context.Context, instanceID string) ([]json.RawMessage, error)
	// OrderQueue puts a queue into another order. A repeat with the same id changes nothing. Faults: NotFound, RequestChanged, Invalid.
	OrderQueue(ctx context.Context, o schemas.QueueOrder) (schemas.OrderedQueue, error)
}

// Edit replaces a request with the body of PUT /circulation/requests/{id}. What the request is for,
// its place and an open status stay as they are. A closed status, such as Closed - Cancelled, ends
// the request: the next ones move up, and a Paged item that no other request names is Available. An
// unknown id places the request, unless the status is closed.
//
// Faults: those of Create; NotFound for a request to close that does not exist; Invalid for a request
// that is closed, or for another item, patron or type; RequestChanged if the request keeps changing.
func (s *Service) Edit(ctx context.Context, id string, body []byte) error {
	doc, err := jsonschema.DecodeObject(body)
	if err != nil {
		return err
	}
	doc["id"] = id // as in FOLIO, the path decides
	if err := checkStatus(doc["status"]); err != nil {
		return err
	}
	return library.RetryChange(func() error {
		stored, err := s.readStored(ctx, id)
		switch {
		case err == nil:
			return s.edit(ctx, doc, stored)
		case !fault.Is(err, fault.NotFound), doc["status"] != nil && !isOpen(doc):
			return err
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			return fmt.Errorf("writing the request: %w", err)
		}
		_, err = s.Create(ctx, raw)
		return err
	})
}

// Delete removes a request, also one that no longer fits its schema. The rest of its queue and its
// item change as if it was cancelled.
// Faults: NotFound; RequestChanged if the request keeps changing.
func (s *Service) Delete(ctx context.Context, id string) error {
	return library.RetryChange(func() error {
		stored, err := s.readStored(ctx, id)
		if err != nil {
			return err
		}
		ids := map[string]any{"id": id}
		for _, key := range [...]string{"instanceId", "itemId"} {
			if text, ok := stored[key].(string); ok {
				ids[key] = text
			}
		}
		return s.sendChange(ctx, ids, true)
	})
}

// readStored returns a stored request. Fault: NotFound.
func (s *Service) readStored(ctx context.Context, id string) (stored map[string]any, err error) {
	raw, err := s.Library.Request(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.NotFound, "There is no request with the id %s", id)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("reading the stored request: %w", err)
	}
	return stored, nil
}

// edit sends the request as the client wants it, completed with what the client left out.
func (s *Service) edit(ctx context.Context, doc, stored map[string]any) error {
	wrong := checkFixed(doc, stored)
	if !isOpen(stored) && (len(wrong) > 0 || doc["status"] != stored["status"]) { // storage judges whether it is a repeat
		return fault.Validation(newAlreadyClosed(fmt.Sprint(stored["id"])))
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	edited := maps.Clone(doc)
	for _, key := range append(embedded[:], processing) {
		delete(edited, key)
	}
	for _, key := range append(fixed[:], "holdingsRecordId", "requestDate", "fulfillmentPreference", "status") {
		if value, exists := stored[key]; exists && edited[key] == nil {
			edited[key] = value
		}
	}
	extendToEndOfDay(edited)
	if err := jsonschema.CheckRecord("request", edited); err != nil {
		return err
	}
	if err := s.judgeEdit(ctx, edited, stored); err != nil {
		return err
	}
	return s.sendChange(ctx, edited, false)
}

func isOpen(doc map[string]any) bool {
	return slices.Contains(schemas.OpenRequestStatuses(), fmt.Sprint(doc["status"]))
}

// newAlreadyClosed has FOLIO's text, which its clients recognise, and its code.
func newAlreadyClosed(id string) fault.Detail {
	return fault.Refusal("REQUEST_ALREADY_CLOSED", "The Request has already been closed", newParameter("id", id))
}

// fixed are the properties that say what a request is for.
var fixed = [...]string{"instanceId", "itemId", "requesterId", "requestType", "requestLevel"}

func checkFixed(doc, stored map[string]any) (wrong fault.List) {
	for _, key := range fixed {
		if sent := doc[key]; sent != nil && !strings.EqualFold(fmt.Sprint(sent), fmt.Sprint(stored[key])) {
			wrong = append(wrong, fault.Refusal("PROPERTY_IS_FIXED", fmt.Sprintf("%s of a request cannot be changed by an edit, it is %s", key, fault.Shown(stored[key])),
				fault.Param(key, fault.Shown(sent))))
		}
	}
	return wrong
}

// judgeEdit refuses another proxy who may not act for the patron, and a place at which the patron
// cannot fetch the item. It adds the copies of both.
func (s *Service) judgeEdit(ctx context.Context, edited, stored map[string]any) error {
	var w wish
	var err error
	if w.record, err = readQueued(edited); err != nil {
		return err
	}
	w.proxyID, _ = edited["proxyUserId"].(string)
	var f facts
	g, gctx := library.NewCalls(ctx)
	library.FindInto(gctx, g, &f.pickup, w.record.PickupServicePointID, s.Library.PickupPoint)
	s.readProxy(gctx, g, w, &f)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reading what an edit is judged by: %w", err)
	}
	var wrong fault.List
	if before, _ := stored["proxyUserId"].(string); !strings.EqualFold(w.proxyID, before) {
		wrong = w.judgeProxy(f, s.Now())
	}
	if isOpen(edited) {
		wrong = append(wrong, w.judgePickup(f)...)
	}
	if f.proxy.ID != "" {
		edited["proxy"] = copyPatron(f.proxy)
	}
	if searched := f.copySearched(); len(searched) > 0 {
		edited["searchIndex"] = searched
	}
	return wrong.Err()
}

// sendChange sends the change until its outcome is known: storage recognises its id. From here on
// the client's connection does not matter.
func (s *Service) sendChange(ctx context.Context, doc map[string]any, deletes bool) error {
	titles, err := s.Library.TitleLevelRequests(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	change := schemas.RequestChange{ID: uuid.NewString(), Request: raw, TitleLevel: titles, Delete: deletes}
	send := func(ctx context.Context) error { return s.Keeper.ChangeRequest(ctx, change) }
	return library.FinishChange(ctx, s.Log.With("change_id", change.ID, "placed_id", doc["id"]), "the change of a request", send)
}
