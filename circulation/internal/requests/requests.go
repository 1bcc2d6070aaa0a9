// Package requests places patrons' requests for items and titles, as far as
// check-outs and check-ins need them.
package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Library finds records. Every method returns a fault with code NotFound when
// there is no such record.
type Library interface {
	TitleLevelRequests(ctx context.Context) (bool, error)
	User(ctx context.Context, id string) (library.User, error)
	Item(ctx context.Context, id string) (library.Item, error)
	Holdings(ctx context.Context, id string) (library.Holdings, error)
	Instance(ctx context.Context, id string) (library.Instance, error)
	PickupPoint(ctx context.Context, id string) (library.PickupPoint, error)
	// FreeCopy returns an item of the instance that is Available.
	FreeCopy(ctx context.Context, instanceID string) (library.Item, error)
	// Borrows tells whether the patron has an open loan of the item.
	Borrows(ctx context.Context, userID, itemID string) (bool, error)
}

// Placer puts a request at the end of its queue, with what it makes of its item,
// wholly or not at all. A repeat with the same id is answered again. Faults:
// ItemChanged, RequestChanged, Invalid.
type Placer interface {
	Place(ctx context.Context, p schemas.Placement) (schemas.PlacedRequest, error)
}

// Service places requests. All fields are required. It is safe for concurrent
// use.
type Service struct {
	Library Library
	Placer  Placer
}

// Create places the request in the body of POST /circulation/requests and returns
// it as stored: open, not yet filled, at the end of its queue. A page of an
// available item makes it Paged; a page for a title takes any available copy. Which
// types of requests a patron may place is not asked of the circulation rules.
//
// Faults: Malformed for what is no JSON; Invalid with FOLIO's messages;
// ItemChanged when the item keeps being changed by others.
func (s *Service) Create(ctx context.Context, body []byte) (json.RawMessage, error) {
	w, err := s.parse(ctx, body)
	if err != nil {
		return nil, err
	}
	placed, err := s.once(ctx, w)
	if fault.Is(err, fault.ItemChanged) {
		placed, err = s.once(ctx, w)
	}
	return placed.Request, err
}

// once judges the request by what storage has now, and places it.
func (s *Service) once(ctx context.Context, w wish) (schemas.PlacedRequest, error) {
	f, err := s.gather(ctx, w)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if err := w.judge(f).Err(); err != nil {
		return schemas.PlacedRequest{}, err
	}
	placement, err := w.placement(f)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	return s.Placer.Place(ctx, placement)
}

// wish is a new request as the client asked for it.
type wish struct {
	schemas.QueuedRequest
	titleLevel bool // requests for titles are switched on
	doc        map[string]any
}

// copies are what FOLIO's clients send along and storage keeps copies of its own
// of, or nothing.
var copies = [...]string{"item", "instance", "requester", "proxy", "loan", "pickupServicePoint", "deliveryAddress", "position", "metadata"}

// parse reads a request and refuses what is wrong with it by itself.
func (s *Service) parse(ctx context.Context, body []byte) (wish, error) {
	v, err := jsonschema.Decode(body)
	if err != nil {
		return wish{}, err
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return wish{}, fault.New(fault.Malformed, "The body must be a JSON object")
	}
	for _, key := range copies {
		delete(doc, key)
	}
	doc["status"] = schemas.RequestNotYetFilled
	if doc["requestDate"] == nil {
		doc["requestDate"] = time.Now().UTC().Format(schemas.FolioTime)
	}
	if doc["id"] == nil {
		doc["id"] = uuid.NewString()
	}
	w := wish{doc: doc}
	if w.titleLevel, err = s.Library.TitleLevelRequests(ctx); err != nil {
		return wish{}, err
	}
	if err := w.checkLevel(); err != nil {
		return wish{}, err
	}
	if err := jsonschema.Check("request", doc); err != nil {
		return wish{}, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return wish{}, fmt.Errorf("writing the request: %w", err)
	}
	if err := jsonschema.UnmarshalExact(raw, &w.QueuedRequest); err != nil {
		return wish{}, fmt.Errorf("reading the request: %w", err)
	}
	return w, nil
}

// checkLevel says in FOLIO's words what the schema would say in its own
// (mod-circulation, RequestFromRepresentationService).
func (w wish) checkLevel() error {
	level, _ := w.doc["requestLevel"].(string)
	allowed := []string{`"Item"`}
	if w.titleLevel {
		allowed = append(allowed, `"Title"`)
	}
	switch {
	case level != "Item" && (level != "Title" || !w.titleLevel):
		return fault.Validation(fault.Refusal("", "requestLevel must be one of the following: "+strings.Join(allowed, ", "), value("requestLevel", level)))
	case w.doc["instanceId"] == nil:
		return fault.Validation(fault.Refusal("", "Cannot create a request with no instance ID", value("instanceId", "")))
	case level == "Item" && w.doc["itemId"] == nil:
		return fault.Validation(fault.Refusal("", "Cannot create a request with no item ID", value("itemId", "")))
	}
	return nil
}

// value is a parameter, null when there is nothing.
func value(key, v string) fault.Parameter {
	if v == "" {
		return fault.Parameter{Key: key}
	}
	return fault.Param(key, fault.Shown(v))
}
