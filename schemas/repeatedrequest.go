package schemas

import (
	"strings"

	"checkoutlock/schemas/fault"
)

// RefuseRepeated refuses a request of a patron who is in the queue already. It returns nil for
// others. Circulation judges by it before a commit, and storage within it. With titleLevel, a
// request for the title and one for its copies exclude each other.
//
// Source: FOLIO's RequestServiceUtility.
func (r QueuedRequest) RefuseRepeated(queue []QueuedRequest, titleLevel bool) fault.List {
	for _, other := range queue {
		if other.Open() && strings.EqualFold(other.RequesterID, r.RequesterID) && r.repeats(other, titleLevel) {
			return fault.List{r.newRepeated(other)}
		}
	}
	return nil
}

func (r QueuedRequest) repeats(other QueuedRequest, titleLevel bool) bool {
	if titleLevel && (r.isOfTitle() || other.isOfTitle()) {
		return strings.EqualFold(r.InstanceID, other.InstanceID)
	}
	return r.ItemID != "" && strings.EqualFold(r.ItemID, other.ItemID)
}

func (r QueuedRequest) isOfTitle() bool { return r.RequestLevel == "Title" }

func (r QueuedRequest) newRepeated(other QueuedRequest) fault.Detail {
	patron, title := fault.Param("requesterId", r.RequesterID), fault.Param("instanceId", r.InstanceID)
	switch {
	case r.isOfTitle() && other.isOfTitle():
		return fault.Refusal("INSTANCE_ALREADY_REQUESTED", "This requester already has an open request for this instance", patron, title)
	case r.isOfTitle():
		return fault.Refusal("ITEM_OF_THIS_INSTANCE_ALREADY_REQUESTED", "This requester already has an open request for one of the instance's items", patron, title)
	}
	return fault.Refusal("ITEM_ALREADY_REQUESTED", "This requester already has an open request for this item",
		patron, fault.Param("itemId", r.ItemID), fault.Param("requestId", other.ID))
}
