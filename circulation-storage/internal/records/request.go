package records

import (
	"context"
	"encoding/json"
	"strconv"

	"checkoutlock/schemas/fault"
)

// Request is a patron's wish for an item or a title (mod-circulation-storage). An
// open one has a position in a queue: its item's, or with title-level requests its
// title's. Who keeps the positions 1, 2, … is whoever writes requests; here no two
// open requests of one item share a position.
func Request() Type {
	return Type{
		Name: "request", Path: "/request-storage/requests", Collection: "requests", Table: "request", Schema: "request",
		Permission: "circulation-storage.requests", Upsert: true, Prepare: prepareRequest,
		Indexes: index(fields{
			Text: {
				"status", "requestType", "requestLevel", "fulfillmentPreference", "ecsRequestPhase", "patronComments", "tags.tagList",
				"instance.title", "instance.identifiers", "item.barcode",
				"requester.firstName", "requester.lastName", "requester.middleName", "requester.barcode",
				"proxy.firstName", "proxy.lastName", "proxy.barcode",
				"cancellationAdditionalInformation", "searchIndex.callNumberComponents.callNumber", "searchIndex.shelvingOrder",
				"searchIndex.pickupServicePointName",
			},
			UUID: {
				"proxyUserId", "holdingsRecordId", "pickupServicePointId", "deliveryAddressTypeId", "cancellationReasonId",
				"cancelledByUserId", "item.itemEffectiveLocationId", "item.retrievalServicePointId",
			},
			Number:  {"position", "printDetails.printCount"},
			Boolean: {"printDetails.isPrinted"},
			Time: {
				"requestDate", "requestExpirationDate", "holdShelfExpirationDate", "cancelledDate", "awaitingPickupRequestClosedDate",
				"printDetails.printEventDate",
			},
		}, columns{"itemId": "item_id", "instanceId": "instance_id", "requesterId": "requester_id"}).
			inColumn("status", "status").inColumn("position", "position"),
		Unique: []Unique{{
			Constraint: "request_item_id_position_key", Fields: []string{"itemId", "position"},
			Message: "Cannot have more than one request with the same position in the queue",
		}},
	}
}

// prepareRequest applies the rules of mod-circulation-storage's requests, with its
// messages: a request for an item names it and its holdings record, one for a title
// names both or none.
func prepareRequest(_ context.Context, _ Reader, w Write) error {
	request := w.Record
	if n, ok := request["position"].(json.Number); ok {
		if f, err := strconv.ParseFloat(n.String(), 64); err == nil {
			request["position"] = int(f) // 2.0 does not fit in the column
		}
	}
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

// PatronActionSession is a loan that a patron got or returned since the last
// notice (mod-circulation-storage).
func PatronActionSession() Type {
	return Type{
		Name: "patron action session", Path: "/patron-action-session-storage/patron-action-sessions", Collection: "patronActionSessions",
		Table: "patron_action_session", Schema: "patron-action-session",
		Permission: "patron-action-session-storage.patron-action-sessions",
		Indexes: index(fields{Text: {"actionType"}, UUID: {"sessionId"}},
			columns{"patronId": "patron_id", "loanId": "loan_id"}),
	}
}
