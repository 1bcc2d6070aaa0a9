package schemas

import "encoding/json"

// Placement is the body of POST /request-storage/placements (ours): a new request
// that goes to the end of its queue, and what it makes of its item, in one
// transaction.
type Placement struct {
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
}

// PlacedRequest is the answer to it. Item is absent when the request names none.
type PlacedRequest struct {
	Request json.RawMessage `json:"request"`
	Item    json.RawMessage `json:"item,omitempty"`
}
