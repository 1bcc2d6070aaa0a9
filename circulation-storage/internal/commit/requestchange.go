package commit

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// RequestChange is an edit, a cancellation or a deletion of a request, from ParseRequestChange.
type RequestChange struct {
	ID         uuid.UUID // chosen by the caller; a repeat has the same one; Nil for none
	RequestID  uuid.UUID
	InstanceID uuid.UUID // as the caller saw it; Nil for none
	ItemID     uuid.UUID // as the caller saw it; Nil for none
	// TitleLevel makes the requests of the instance the queue.
	TitleLevel bool
	Delete     bool

	request records.Record
}

// ParseRequestChange reads the body of POST /request-storage/changes. Faults: Malformed for bad
// JSON, Invalid for the rest, with place and rule.
func ParseRequestChange(body []byte) (RequestChange, error) {
	doc, err := parseBody("request-change", body)
	if err != nil {
		return RequestChange{}, err
	}
	request := doc.Object("request")
	c := RequestChange{
		ID: readID(doc, "id"), RequestID: readID(request, "id"), InstanceID: readID(request, "instanceId"), ItemID: readID(request, "itemId"),
		TitleLevel: doc["titleLevelRequests"] == true, Delete: doc["delete"] == true, request: request,
	}
	c.TitleLevel = c.TitleLevel && c.InstanceID != uuid.Nil // without an instance its item has the queue
	request["id"] = c.RequestID.String()
	return c, nil
}

// Decide judges a change. A request that is edited keeps what its queue, its item and its patron
// decide; see keptByEdits. One that is closed or deleted leaves its queue, and the next ones move up.
// A change that would close a closed request as it is already is a repeat. Faults: NotFound,
// RequestChanged, Invalid.
func (c RequestChange) Decide(ctx context.Context, seen Seen) (Change, error) {
	repeated, err := seen.findRequestRepeat(c.ID, c.RequestID)
	switch {
	case repeated || err != nil:
		return Change{Repeated: repeated}, err
	case seen.Request == nil:
		return Change{}, newNoRequest(c.RequestID)
	case c.Delete && !isOpenRequest(seen.Request):
		return Change{}, nil
	case !isOpenRequest(seen.Request) && c.closesAs(seen.Request):
		return Change{Repeated: true}, nil
	case !isOpenRequest(seen.Request):
		return Change{}, newAlreadyClosed(c.RequestID)
	case c.isOutdated(seen):
		return Change{}, newRequestMoved(c.RequestID)
	case c.InstanceID != uuid.Nil:
		if err := checkTitles(c.TitleLevel, seen.TitlesOn); err != nil {
			return Change{}, err
		}
	}
	edited := c.editRequest(seen.Request)
	var change Change
	if !c.Delete {
		change.Events = []Event{newRequestChangeEvent(ctx, "REQUEST_UPDATED_EVENT", seen.Request, edited)}
	}
	if !c.Delete && isOpenRequest(edited) {
		change.Requests = seen.Queue.listChanged(Queue{edited})
		return change.complete(ctx, seen.Now, nil, nil, seen.Queue)
	}
	rest := seen.Queue.leave(seen.Request, c.TitleLevel, seen.OtherTitles)
	after := rest
	if !c.Delete {
		delete(edited, "position")
		after = slices.Concat(rest, Queue{edited})
	}
	change.Requests, change.Items = seen.Queue.listChanged(after), freeItem(seen.Item, rest, seen.OtherTitles)
	return change.complete(ctx, seen.Now, nil, []records.Record{seen.Item}, seen.Queue)
}

// findRequestRepeat reports whether a change with the id was committed before. It refuses the id of a change
// of another request.
func (seen Seen) findRequestRepeat(id, requestID uuid.UUID) (bool, error) {
	if seen.Before != uuid.Nil && seen.Before != requestID {
		return false, newInvalid("id is already that of a change of another request", "id", id.String())
	}
	return seen.Before != uuid.Nil, nil
}

func newRequestChangeEvent(ctx context.Context, kind string, original, updated records.Record) Event {
	return newRequestEvent(ctx, kind, updated, map[string]any{"original": original, "updated": updated})
}

// closesAs reports whether the closed request is what the change makes of it.
func (c RequestChange) closesAs(stored records.Record) bool {
	edited, is := c.editRequest(stored), clone(stored)
	delete(edited, "metadata")
	delete(is, "metadata")
	return reflect.DeepEqual(edited, is)
}

// isOutdated reports whether the caller saw the request in another queue. One without an instance and
// an item is in none.
func (c RequestChange) isOutdated(seen Seen) bool {
	queued := c.InstanceID != uuid.Nil || c.ItemID != uuid.Nil
	return readID(seen.Request, "instanceId") != c.InstanceID || readID(seen.Request, "itemId") != c.ItemID ||
		queued && indexOf(seen.Queue, seen.Request.ID()) < 0
}

// keptByEdits are the properties that an edit leaves as they are stored: what the request is for,
// its place, and the copies of other records.
var keptByEdits = [...]string{
	"instanceId", "itemId", "holdingsRecordId", "requesterId", "requestType", "requestLevel", "position", "ecsRequestPhase",
	"item", "instance", "requester", "printDetails", "awaitingPickupRequestClosedDate",
}

// editRequest returns the stored request as edited. Only a closed status replaces the stored one:
// a check-in may have given that meanwhile, with the end of the hold shelf, or without it.
func (c RequestChange) editRequest(stored records.Record) records.Record {
	edited := clone(c.request)
	kept := slices.Clone(keptByEdits[:])
	if isOpenRequest(edited) {
		kept = append(kept, "status")
	}
	if edited["holdShelfExpirationDate"] == nil || stored.Text("status") != schemas.RequestAwaitingPickup {
		kept = append(kept, "holdShelfExpirationDate")
	}
	if readID(edited, "proxyUserId") == readID(stored, "proxyUserId") {
		kept = append(kept, "proxy")
	}
	for _, key := range kept {
		delete(edited, key)
		if value, ok := stored[key]; ok {
			edited[key] = value
		}
	}
	keepSearched(edited, stored)
	return edited
}

// keepSearched keeps the fields that searches compare, except the name of another pickup place.
func keepSearched(edited, stored records.Record) {
	const place = "pickupServicePointName"
	searched := records.Record{}
	maps.Copy(searched, stored.Object("searchIndex"))
	if readID(edited, "pickupServicePointId") != readID(stored, "pickupServicePointId") {
		searched.Set(place, edited.Text("searchIndex."+place))
	}
	if delete(edited, "searchIndex"); len(searched) > 0 {
		edited["searchIndex"] = map[string]any(searched)
	}
}

// leave returns the others of the request's queue, moved up, in the order of their positions. The
// locked requests may be those of several items; each of these has a queue of its own unless the
// instance has one. No request gets a position that otherTitles have for its item.
func (q Queue) leave(request records.Record, titles bool, otherTitles Queue) Queue {
	rest := slices.DeleteFunc(q.sorted(), func(r records.Record) bool {
		return r.ID() == request.ID() || !titles && readID(r, "itemId") != readID(request, "itemId")
	})
	return rest.renumber(otherTitles)
}

// freeItem makes a Paged item Available that no open request names any more, as mod-circulation
// does. An item that waits for pickup or is on its way waits for its next check-in.
func freeItem(item records.Record, open, otherTitles Queue) []records.Record {
	names := func(r records.Record) bool { return readID(r, "itemId") == readID(item, "id") }
	if item.Text("status.name") != paged || slices.ContainsFunc(open, names) || slices.ContainsFunc(otherTitles, names) {
		return nil
	}
	return []records.Record{withStatus(item, available)}
}

func isOpenRequest(r records.Record) bool {
	return slices.Contains(schemas.OpenRequestStatuses(), r.Text("status"))
}

func newNoRequest(id uuid.UUID) error {
	return fault.New(fault.NotFound, "There is no request with the id %s", id)
}

// newAlreadyClosed has FOLIO's text, which its clients recognise. Circulation answers it as it is.
func newAlreadyClosed(id uuid.UUID) error {
	return refuse("REQUEST_ALREADY_CLOSED", "The Request has already been closed", fault.Param("id", id.String()))
}

func newRequestMoved(id uuid.UUID) error {
	return fault.New(fault.RequestChanged, "The request %s is for another item now: read it again", id)
}
