package requests

import (
	"context"
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

// wish is a new request as the client asked for it.
type wish struct {
	doc        map[string]any // with every property that the client sent
	record     schemas.QueuedRequest
	proxyID    string // who requests for the patron; "" for none
	named      bool   // the client chose the id
	unblocked  bool   // staff lift the patron's blocks
	titleLevel bool   // requests for titles are switched on
}

// embedded are the properties in which FOLIO's clients send other records. Storage makes its
// own, or keeps none.
var embedded = [...]string{"item", "instance", "requester", "proxy", "searchIndex", "loan", "pickupServicePoint", "deliveryAddress", "position", "metadata"}

// parseWish reads a request and refuses what is wrong with it by itself.
func (s *Service) parseWish(ctx context.Context, body []byte) (wish, error) {
	w, err := s.decodeWish(body)
	if err != nil {
		return wish{}, err
	}
	if err := s.addTitle(ctx, w.doc); err != nil {
		return wish{}, err
	}
	if w.titleLevel, err = s.Library.TitleLevelRequests(ctx); err != nil {
		return wish{}, err
	}
	if err := w.check(); err != nil {
		return wish{}, err
	}
	if err := jsonschema.CheckRecord("request", w.doc); err != nil {
		return wish{}, err
	}
	w.record, err = readQueued(w.doc)
	w.proxyID, _ = w.doc["proxyUserId"].(string)
	return w, err
}

// decodeWish reads the body without the properties that only circulation needs, and adds what every
// new request has.
func (s *Service) decodeWish(body []byte) (wish, error) {
	doc, err := jsonschema.DecodeObject(body)
	if err != nil {
		return wish{}, err
	}
	if err := checkStatus(doc["status"]); err != nil {
		return wish{}, err
	}
	if err := jsonschema.Check("new-request", doc); err != nil {
		return wish{}, err
	}
	w := wish{doc: doc, named: doc["id"] != nil, unblocked: liftsBlocks(doc)}
	for _, key := range append(embedded[:], processing) {
		delete(doc, key)
	}
	doc["status"] = schemas.RequestNotYetFilled
	if doc["requestDate"] == nil {
		doc["requestDate"] = s.Now().UTC().Format(schemas.FolioTime)
	}
	if !w.named {
		doc["id"] = uuid.NewString()
	}
	extendToEndOfDay(doc)
	return w, nil
}

// extendToEndOfDay sets the expiration of a request to the last second of its day, in UTC, until which
// FOLIO keeps it.
func extendToEndOfDay(doc map[string]any) {
	text, _ := doc[expiration].(string)
	if at, err := jsonschema.ParseTime(text); err == nil { // the schema refuses other texts
		at = at.UTC()
		doc[expiration] = library.Instant{Time: time.Date(at.Year(), at.Month(), at.Day(), 23, 59, 59, 0, time.UTC)}.Text()
	}
}

const (
	processing = "requestProcessingParameters"
	expiration = "requestExpirationDate"
)

// liftsBlocks reports whether staff lift the patron's blocks. The schema has checked the types.
func liftsBlocks(doc map[string]any) bool {
	parameters, _ := doc[processing].(map[string]any)
	blocks, _ := parameters["overrideBlocks"].(map[string]any)
	return blocks[library.PatronBlock.Name] != nil
}

// checkStatus refuses a status that no request has. A new request gets another status than the
// client's, as in FOLIO, but a misspelt one shows a mistake.
func checkStatus(status any) error {
	if name, _ := status.(string); status == nil || slices.Contains(schemas.RequestStatuses(), name) {
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
	if err := library.CheckUUID("itemId", itemID).Err(); err != nil {
		return err
	}
	item, found, err := fault.Found(s.Library.Item(ctx, itemID))
	if err != nil {
		return err
	}
	if !found {
		return fault.Validation(fault.Refusal(library.CodeItemUnknown, "Item does not exist", newParameter("itemId", itemID)))
	}
	holdings, err := s.Library.Holdings(ctx, item.HoldingsRecordID)
	if err != nil {
		return fmt.Errorf("reading the holdings of the item: %w", err)
	}
	doc["requestLevel"], doc["instanceId"] = "Item", holdings.InstanceID
	return nil
}

// check refuses in FOLIO's words what the schema would refuse in others (mod-circulation,
// RequestFromRepresentationService).
func (w wish) check() error {
	level, _ := w.doc["requestLevel"].(string)
	preference, _ := w.doc["fulfillmentPreference"].(string)
	allowed := []string{`"Item"`}
	if w.titleLevel {
		allowed = append(allowed, `"Title"`)
	}
	switch {
	case level != "Item" && (level != forTitle || !w.titleLevel):
		return fault.Validation(fault.Refusal("REQUEST_LEVEL_IS_NOT_ALLOWED",
			"Request level must be one of the following: "+strings.Join(allowed, ", "), newParameter("requestLevel", level)))
	case preference != holdShelf && preference != "Delivery":
		return fault.Validation(fault.Refusal("FULFILLMENT_PREFERENCE_IS_NOT_ALLOWED",
			"Fulfillment preference must be one of the following: Hold Shelf, Delivery", newParameter("fulfillmentPreference", preference)))
	}
	var found fault.List
	if w.doc["instanceId"] == nil {
		found = append(found, fault.Refusal(library.CodeMissing, "Cannot create a request with no instance ID", newParameter("instanceId", "")))
	}
	if level == "Item" && w.doc["itemId"] == nil {
		found = append(found, fault.Refusal(library.CodeMissing, "Cannot create an item level request with no item ID", newParameter("itemId", "")))
	}
	if level == forTitle && (w.doc["itemId"] != nil || w.doc["holdingsRecordId"] != nil) {
		itemID, _ := w.doc["itemId"].(string)
		holdingsID, _ := w.doc["holdingsRecordId"].(string)
		found = append(found, fault.Refusal("CANNOT_CREATE_PAGE_TLR_WITHOUT_ITEM_ID", "Cannot create a title level page request for this instance ID with no item ID",
			newParameter("itemId", itemID), newParameter("holdingsRecordId", holdingsID)))
	}
	return found.Err()
}
