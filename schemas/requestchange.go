package schemas

import "encoding/json"

// RequestChange is the body of POST /request-storage/changes (ours): an edit, a cancellation or a
// deletion of a request, and what that makes of its queue and its item, in one transaction.
type RequestChange struct {
	// Request is the storage request. Its instance and item are those that the caller saw: a
	// request that was moved meanwhile is refused. Storage keeps position, copies and, unless this
	// one is closed, the status.
	Request json.RawMessage `json:"request"`
	// TitleLevel makes the requests of the instance the queue, not those of the item alone.
	TitleLevel bool `json:"titleLevelRequests,omitempty"`
	Delete     bool `json:"delete,omitempty"`
}
