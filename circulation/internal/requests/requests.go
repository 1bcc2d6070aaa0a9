// Package requests places patrons' requests for items and titles, as far as check-outs and
// check-ins need them.
package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Library is what requests read.
type Library interface {
	TitleLevelRequests(ctx context.Context) (bool, error)
	User(ctx context.Context, id string) (library.User, error)
	Item(ctx context.Context, id string) (library.Item, error)
	Holdings(ctx context.Context, id string) (library.Holdings, error)
	Instance(ctx context.Context, id string) (library.Instance, error)
	PickupPoint(ctx context.Context, id string) (library.ServicePoint, error)
	// FreeCopy returns an item of the instance that is Available.
	FreeCopy(ctx context.Context, instanceID string) (library.Item, error)
	// Borrows reports whether the patron has an open loan of the item.
	Borrows(ctx context.Context, userID, itemID string) (bool, error)
}

// Placer puts a request at the end of its queue and changes the item's status with it, wholly or
// not at all. A repeat with the same id gets the same answer. Faults: ItemChanged, RequestChanged,
// Invalid.
type Placer interface {
	Place(ctx context.Context, p schemas.Placement) (schemas.PlacedRequest, error)
}

// Service places requests. All fields are required. It is safe for concurrent use.
type Service struct {
	Library Library
	Placer  Placer
}

// Create places the request in the body of POST /circulation/requests and returns it as stored:
// open, not yet filled, at the end of its queue. A page of an available item makes it Paged. A page
// for a title takes any available copy. The circulation rules do not restrict the types of
// requests.
//
// Faults: Malformed for a body that is no JSON; Invalid with FOLIO's messages; ItemChanged if the
// item keeps changing.
func (s *Service) Create(ctx context.Context, body []byte) (json.RawMessage, error) {
	w, err := s.parseWish(ctx, body)
	if err != nil {
		return nil, err
	}
	placed, err := s.place(ctx, w)
	if fault.Is(err, fault.ItemChanged) {
		placed, err = s.place(ctx, w)
	}
	return placed.Request, err
}

// place judges the request by what storage has now, and places it.
func (s *Service) place(ctx context.Context, w wish) (schemas.PlacedRequest, error) {
	f, err := s.readFacts(ctx, w)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	if err := w.judge(f).Err(); err != nil {
		return schemas.PlacedRequest{}, err
	}
	placement, err := w.makePlacement(f)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	return s.Placer.Place(ctx, placement)
}

// wish is a new request as the client asked for it.
type wish struct {
	doc        map[string]any // with every property that the client sent
	record     schemas.QueuedRequest
	titleLevel bool // requests for titles are switched on
}

// copies are the properties that FOLIO's clients send as copies of other records. Storage makes its
// own copies, or keeps none.
var copies = [...]string{"item", "instance", "requester", "proxy", "loan", "pickupServicePoint", "deliveryAddress", "position", "metadata"}

// parseWish reads a request and refuses what is wrong with it by itself.
func (s *Service) parseWish(ctx context.Context, body []byte) (wish, error) {
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
	if err := checkStatus(doc["status"]); err != nil {
		return wish{}, err
	}
	doc["status"] = schemas.RequestNotYetFilled
	if doc["requestDate"] == nil {
		doc["requestDate"] = time.Now().UTC().Format(schemas.FolioTime)
	}
	if doc["id"] == nil {
		doc["id"] = uuid.NewString()
	}
	w := wish{doc: doc}
	if err := s.addTitle(ctx, doc); err != nil {
		return wish{}, err
	}
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
	if err := jsonschema.UnmarshalExact(raw, &w.record); err != nil {
		return wish{}, fmt.Errorf("reading the request: %w", err)
	}
	return w, nil
}

// checkStatus refuses a status that no request has. A new request gets another status than the
// client's, as in FOLIO, but a misspelt one shows a mistake.
func checkStatus(status any) error {
	if name, ok := status.(string); status == nil || ok && slices.Contains(schemas.RequestStatuses(), name) {
		return nil
	}
	return fault.New(fault.Malformed, "Request status must be one of the following: %q, not %s", schemas.RequestStatuses(), fault.Shown(status))
}

// addTitle completes a request that names an item and neither title nor level, as clients wrote it
// before there were requests for titles.
func (s *Service) addTitle(ctx context.Context, doc map[string]any) error {
	itemID, _ := doc["itemId"].(string)
	if itemID == "" || doc["instanceId"] != nil || doc["requestLevel"] != nil {
		return nil
	}
	item, found, err := fault.Found(s.Library.Item(ctx, itemID))
	if err != nil {
		return err
	}
	if !found {
		return fault.Validation(fault.Refusal("", "Item does not exist", newParameter("itemId", itemID)))
	}
	holdings, err := s.Library.Holdings(ctx, item.HoldingsRecordID)
	if err != nil {
		return fmt.Errorf("reading the holdings of the item: %w", err)
	}
	doc["requestLevel"], doc["instanceId"] = "Item", holdings.InstanceID
	return nil
}

// checkLevel refuses in FOLIO's words what the schema would refuse in others (mod-circulation,
// RequestFromRepresentationService).
func (w wish) checkLevel() error {
	level, _ := w.doc["requestLevel"].(string)
	allowed := []string{`"Item"`}
	if w.titleLevel {
		allowed = append(allowed, `"Title"`)
	}
	switch {
	case level != "Item" && (level != "Title" || !w.titleLevel):
		return fault.Validation(fault.Refusal("", "requestLevel must be one of the following: "+strings.Join(allowed, ", "), newParameter("requestLevel", level)))
	case w.doc["instanceId"] == nil:
		return fault.Validation(fault.Refusal("", "Cannot create a request with no instance ID", newParameter("instanceId", "")))
	case level == "Item" && w.doc["itemId"] == nil:
		return fault.Validation(fault.Refusal("", "Cannot create a request with no item ID", newParameter("itemId", "")))
	}
	return nil
}

// newParameter returns a parameter, which is null for an empty value.
func newParameter(key, v string) fault.Parameter {
	if v == "" {
		return fault.Parameter{Key: key}
	}
	return fault.Param(key, fault.Shown(v))
}
