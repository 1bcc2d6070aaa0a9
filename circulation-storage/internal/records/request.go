package records

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Request is a patron's request for an item or a title (mod-circulation-storage). An
// open request has a position in the queue of its item or, with title-level requests,
// of its title. Callers keep the positions 1, 2, … without gaps. The storage only
// prevents two open requests of one item at the same position.
var Request = Type{
	Name: "request", Path: "/request-storage/requests", Collection: "requests", Table: "request", Schema: "request",
	Permission: "circulation-storage.requests", Interface: "request-storage 6.2", Upsert: true, Prepare: prepareRequest,
	Indexes: newIndexes(fields{
		Text: {
			"status", "requestType", "requestLevel", "fulfillmentPreference", "ecsRequestPhase", "patronComments", "tags.tagList",
			"instance.title", "instance.identifiers", "item.barcode", "item.retrievalServicePointName",
			"requester.firstName", "requester.lastName", "requester.middleName", "requester.barcode",
			"proxy", "proxy.firstName", "proxy.lastName", "proxy.barcode",
			"cancellationAdditionalInformation", "searchIndex.callNumberComponents.callNumber", "searchIndex.shelvingOrder",
			"searchIndex.pickupServicePointName",
		},
		UUID: {
			"proxyUserId", "holdingsRecordId", "pickupServicePointId", "deliveryAddressTypeId",
			"cancelledByUserId", "item.itemEffectiveLocationId", "item.retrievalServicePointId",
		},
		Number:  {"position", "printDetails.printCount"},
		Boolean: {"printDetails.isPrinted", "printDetails.printed"},
		Time: {
			"requestDate", "requestExpirationDate", "holdShelfExpirationDate", "cancelledDate", "awaitingPickupRequestClosedDate",
			"printDetails.printEventDate",
		},
	}, "itemId", "instanceId", "requesterId", "cancellationReasonId").inColumns("status", "position").
		with("itemIsbn", Index{Kind: Text, ISBN: true, Parts: []string{
			`$.instance.identifiers[*] ? (@.identifierTypeId == "8261054f-be78-422d-bd51-4ed9f33c3422").value`,
		}}).
		with("fullCallNumberIndex", Index{Kind: Text, Parts: []string{
			"searchIndex.callNumberComponents.prefix", "searchIndex.callNumberComponents.callNumber", "searchIndex.callNumberComponents.suffix",
		}}),
	Unique: []Unique{{
		Constraint: "request_item_id_position_key", Fields: []string{"itemId", "position"},
		Message: "Cannot have more than one request with the same position in the queue",
	}},
	References: []Reference{
		newReference("request", "cancellationReasonId", "cancellation_reason"),
		newLinks("request", "deliveryAddressTypeId", "addresstype"),
	},
}

// prepareRequest applies the rules of mod-circulation-storage, with its messages. A
// request for an item names the item and its holdings record. A request for a title
// names both or none.
func prepareRequest(_ context.Context, _ Reader, w Write) error {
	request := w.Record
	if n, ok := request["position"].(json.Number); ok {
		if f, err := strconv.ParseFloat(n.String(), 64); err == nil {
			request["position"] = int(f) // 2.0 does not fit in the column
		}
	}
	StampClosed(w)
	item, holdings := request.Text("itemId"), request.Text("holdingsRecordId")
	var wrong fault.List
	refuse := func(field, message string) {
		wrong = append(wrong, fault.StorageDetail(message, fault.Parameter{Key: field}))
	}
	switch {
	case request.Text("requestLevel") == "Item":
		if item == "" {
			refuse("itemId", "Item ID in item level request should not be absent")
		}
		if holdings == "" {
			refuse("holdingsRecordId", "Holdings record ID in item level request should not be absent")
		}
	case (item == "") != (holdings == ""):
		refuse("itemId", "Title level request must have both itemId and holdingsRecordId or neither")
	}
	return wrong.Err()
}

// StampClosed notes when a request that waited for pickup is closed and not filled. The hold shelf
// has its item then.
func StampClosed(w Write) {
	status := w.Record.Text("status")
	if w.Stored.Text("status") == schemas.RequestAwaitingPickup && strings.HasPrefix(status, "Closed - ") && status != "Closed - Filled" {
		w.Record["awaitingPickupRequestClosedDate"] = w.Now.UTC().Format(schemas.FolioTime)
	}
}

// RequestBatchSchema is the JSON Schema of what ParseRequestBatch reads.
const RequestBatchSchema = "request-batch"

// ParseRequestBatch reads {"requests":[…]} and sets missing ids as Parse does. Fault:
// Invalid, also for an id that occurs twice; it names the request.
func ParseRequestBatch(body []byte) ([]Record, error) {
	doc, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if err := jsonschema.Check(RequestBatchSchema, map[string]any(doc)); err != nil {
		return nil, err
	}
	list, _ := doc["requests"].([]any)
	requests := make([]Record, len(list))
	first := map[string]int{}
	for i, v := range list {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("writing requests[%d]: %w", i, err)
		}
		if requests[i], err = Request.Parse(raw, ""); err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		id := requests[i].ID()
		if before, ok := first[id]; ok {
			return nil, fault.StorageRefusal(fmt.Sprintf("requests[%d] has the id of requests[%d]: each request may come once", i, before),
				fault.Param(fmt.Sprintf("requests[%d].id", i), id))
		}
		first[id] = i
	}
	return requests, nil
}
