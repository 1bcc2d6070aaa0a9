package schemas

import "encoding/json"

// RequestChange is the body of POST /request-storage/changes (ours): an edit, a cancellation or a
// deletion of a request, and what that makes of its queue and its item, in one transaction.
type RequestChange struct {
	// ID is chosen by the caller: a repeat with the same id changes nothing, for a day.
	ID string `json:"id,omitempty"`
	// Request is the storage request. Its instance and item are those that the caller saw: a
	// request that was moved meanwhile is refused. Storage keeps position, copies and, unless this
	// one is closed, the status.
	Request json.RawMessage `json:"request"`
	// TitleLevel makes the requests of the instance the queue, not those of the item alone.
	TitleLevel bool `json:"titleLevelRequests,omitempty"`
	// Delete needs no more of Request than the ids of the request, its instance and its item.
	Delete bool `json:"delete,omitempty"`
}

// RequestMove is the body of POST /request-storage/moves (ours): a request as it is at another item
// of its instance. It goes to the end of its queue there.
type RequestMove struct {
	// ID is chosen by the caller for each commit: a repeat with the same id changes nothing, for a day.
	ID string `json:"id,omitempty"`
	// Request, ItemVersion, TitleLevel and Recall are those of a Placement at the new item.
	Request     json.RawMessage `json:"request"`
	ItemVersion *int            `json:"itemVersion"`
	TitleLevel  bool            `json:"titleLevelRequests,omitempty"`
	Recall      *LoanRecall     `json:"recall,omitempty"`
	// FromItemID is the item that the caller saw; "" for none. A request that was moved meanwhile is
	// refused.
	FromItemID string `json:"fromItemId,omitempty"`
}

// QueueOutdated is FOLIO's refusal of an order of another queue than the stored one. FOLIO's client
// recognises the text.
const QueueOutdated = "There is inconsistency between provided reordered queue and item queue."

// CodeQueueOutdated is the code of that refusal.
const CodeQueueOutdated = "QUEUE_OUTDATED"

// QueueOrder is the body of POST /request-storage/queue-orders (ours): all requests of the queue of
// an item, or of an instance, with their new positions.
type QueueOrder struct {
	// ID is chosen by the caller for each commit: a repeat with the same id changes nothing, for a day.
	ID         string       `json:"id,omitempty"`
	ItemID     string       `json:"itemId,omitempty"`
	InstanceID string       `json:"instanceId,omitempty"`
	Queue      []QueuePlace `json:"reorderedQueue"`
}

// QueuePlace is where a request of a queue goes. Position is the one that the caller saw: if the
// request has another one by now, the order is refused.
type QueuePlace struct {
	ID          string `json:"id"`
	Position    int    `json:"position,omitempty"`
	NewPosition int    `json:"newPosition"`
}

// OrderedQueue is the answer to it: the whole queue, in its order.
type OrderedQueue struct {
	Requests []json.RawMessage `json:"requests"`
}
