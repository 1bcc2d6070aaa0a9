package schemas

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// The statuses of open requests (request-storage, request.json).
const (
	RequestNotYetFilled     = "Open - Not yet filled"
	RequestAwaitingPickup   = "Open - Awaiting pickup"
	RequestInTransit        = "Open - In transit"
	RequestAwaitingDelivery = "Open - Awaiting delivery"
)

// The types of requests (request-storage, request.json).
const (
	RequestPage   = "Page"
	RequestHold   = "Hold"
	RequestRecall = "Recall"
)

// OpenRequestStatuses returns the statuses of requests that wait in a queue.
func OpenRequestStatuses() []string {
	return []string{RequestNotYetFilled, RequestAwaitingPickup, RequestInTransit, RequestAwaitingDelivery}
}

// RequestStatuses returns all statuses of requests.
func RequestStatuses() []string {
	return append(OpenRequestStatuses(), "Closed - Filled", "Closed - Cancelled", "Closed - Unfilled", "Closed - Pickup expired")
}

// QueuedRequest is the part of a stored request that a queue is judged by. Circulation
// judges before a commit and storage within it, so the rule stands here.
type QueuedRequest struct {
	ID           string `json:"id"`
	RequesterID  string `json:"requesterId"`
	ItemID       string `json:"itemId"` // empty for a request that any item of the title may fill
	InstanceID   string `json:"instanceId"`
	RequestType  string `json:"requestType"`  // Hold, Recall or Page
	RequestLevel string `json:"requestLevel"` // Item or Title
	Status       string `json:"status"`
	Position     int    `json:"position"` // from 1; 0, which is none, comes last
	// PickupServicePointID and FulfillmentPreference (Hold Shelf or Delivery) say
	// where the item goes when it comes back.
	PickupServicePointID  string `json:"pickupServicePointId"`
	FulfillmentPreference string `json:"fulfillmentPreference"`
	// HoldShelfExpirationDate is until when a waiting item waits, "" for no end.
	HoldShelfExpirationDate string `json:"holdShelfExpirationDate"`
	// The other fields decide nothing; staff slips have them.
	RequestDate           string `json:"requestDate"`
	RequestExpirationDate string `json:"requestExpirationDate"`
	DeliveryAddressTypeID string `json:"deliveryAddressTypeId"`
	PatronComments        string `json:"patronComments"`
}

// Open reports whether the request still waits for an item or the patron.
func (r QueuedRequest) Open() bool { return slices.Contains(OpenRequestStatuses(), r.Status) }

// FilledBy reports whether the request is open and the item, one of the instance,
// may fill it. A request for the title is filled by any item until one is set
// aside for it: a page names its item from the beginning, a hold or a recall when
// the item is on its way (a recall that is not yet filled names the item that
// was called back, and takes another too). Without titleLevel, which is FOLIO's
// title-level requests switched off, requests for titles are skipped.
//
// Source: FOLIO's RequestQueue and Request.canBeFulfilledByItem.
func (r QueuedRequest) FilledBy(itemID, instanceID string, titleLevel bool) bool {
	switch {
	case !r.Open():
		return false
	case r.RequestLevel != "Title":
		return strings.EqualFold(r.ItemID, itemID)
	case !titleLevel || !strings.EqualFold(r.InstanceID, instanceID):
		return false
	}
	return r.ItemID == "" || strings.EqualFold(r.ItemID, itemID) ||
		r.RequestType == RequestRecall && r.Status == RequestNotYetFilled
}

// Recalls reports whether the request is an open recall of the item. It is so with either level of
// requests, because such a recall names its item.
func (r QueuedRequest) Recalls(itemID string) bool {
	return r.RequestType == RequestRecall && r.Open() && strings.EqualFold(r.ItemID, itemID)
}

// FirstFilledBy returns the request of the lowest position that FilledBy allows.
// It is false when there is none. The queue may be in any order.
func FirstFilledBy(queue []QueuedRequest, itemID, instanceID string, titleLevel bool) (QueuedRequest, bool) {
	fitting := slices.DeleteFunc(slices.Clone(queue), func(r QueuedRequest) bool { return !r.FilledBy(itemID, instanceID, titleLevel) })
	if len(fitting) == 0 {
		return QueuedRequest{}, false
	}
	return slices.MinFunc(fitting, func(a, b QueuedRequest) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), strings.Compare(a.ID, b.ID))
	}), true
}

// FirstLentTo is FirstFilledBy for a check-out, where no request counts that names another item. So a recall
// of the title keeps no copy back but the one that it called back, as in FOLIO (CheckOutRequestQueueService).
func FirstLentTo(queue []QueuedRequest, itemID, instanceID string, titleLevel bool) (QueuedRequest, bool) {
	counting := slices.DeleteFunc(slices.Clone(queue), func(r QueuedRequest) bool { return r.ItemID != "" && !strings.EqualFold(r.ItemID, itemID) })
	return FirstFilledBy(counting, itemID, instanceID, titleLevel)
}

func rankOf(r QueuedRequest) int {
	if r.Position <= 0 {
		return math.MaxInt
	}
	return r.Position
}

// Placement is the body of POST /request-storage/placements (ours): a new request
// that goes to the end of its queue, and what it makes of its item, in one
// transaction.
type Placement struct {
	// ID is chosen by the caller for each commit, and is not that of the request: a repeat with the
	// same id does not place a request again that was deleted since, for a day.
	ID string `json:"id,omitempty"`
	// Request is the storage request, id chosen by the caller: a repeat with the
	// same id, requester and item answers the same request again. Status and
	// position are storage's to give.
	Request json.RawMessage `json:"request"`
	// ItemVersion is the _version of the request's item that the caller judged; it
	// goes with a request that names an item, and is nil without one.
	ItemVersion *int `json:"itemVersion,omitempty"`
	// TitleLevel makes the requests of the instance the queue, not those of the
	// item alone.
	TitleLevel bool `json:"titleLevelRequests,omitempty"`
	// Recall goes with a recall of an item on loan.
	Recall *LoanRecall `json:"recall,omitempty"`
}

// LoanRecall gives the open loan of a recalled item its new due date. The loan must be as the
// caller judged it. A loan whose due date a recall has changed before stays as it is.
type LoanRecall struct {
	LoanID string `json:"loanId"`
	// JudgedDueDate is that of the loan that was judged; absent is a loan without a due date.
	JudgedDueDate string `json:"judgedDueDate,omitempty"`
	DueDate       string `json:"dueDate"` // RFC 3339; it may be the judged one
}

// PlacedRequest is the answer to it. Item is absent when the request names none.
type PlacedRequest struct {
	Request json.RawMessage `json:"request"`
	Item    json.RawMessage `json:"item,omitempty"`
}
