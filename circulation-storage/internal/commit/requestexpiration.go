package commit

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// ExpiredQueue is a queue that has expired requests.
type ExpiredQueue struct {
	InstanceID uuid.UUID // Nil for none: then one item has the queue
	// ItemIDs are the items that the expired requests name. Without TitleLevel it is one at most.
	ItemIDs []uuid.UUID
	// TitleLevel makes the requests of the instance the queue.
	TitleLevel bool
}

// ID returns the id of the instance or the item whose queue it is.
func (e ExpiredQueue) ID() uuid.UUID {
	if e.TitleLevel || len(e.ItemIDs) == 0 {
		return e.InstanceID
	}
	return e.ItemIDs[0]
}

// Decide closes what has expired by now and moves the others up. It leaves a request that was given to another item since, and a queue that was found by another setting
// for titles: the next turn finds those.
func (e ExpiredQueue) Decide(ctx context.Context, seen Seen) (Change, error) {
	if e.InstanceID != uuid.Nil && e.TitleLevel != seen.TitlesOn {
		return Change{}, nil
	}
	var open, after Queue
	for _, r := range seen.Queue.sorted() {
		item := readID(r, "itemId")
		mine := item == uuid.Nil || slices.Contains(e.ItemIDs, item)
		switch {
		case mine && hasExpired(r, seen.Now):
			after = append(after, closeExpired(r))
		case e.TitleLevel || mine && (item != uuid.Nil) == (len(e.ItemIDs) > 0):
			open = append(open, r)
		}
	}
	closed := len(after)
	if closed == 0 {
		return Change{}, nil
	}
	open = open.renumber(seen.OtherTitles)
	change := Change{Requests: seen.Queue.listChanged(append(after, open...)), Closed: closed}
	for _, expired := range after {
		change.Events = append(change.Events, newRequestChangeEvent(ctx, "REQUEST_EXPIRED_EVENT", find(seen.Queue, expired.ID()), expired))
	}
	for _, item := range seen.Items {
		change.Items = append(change.Items, freeItem(item, open, seen.OtherTitles)...)
	}
	return change.complete(ctx, seen.Now, nil, seen.Items, seen.Queue)
}

// hasExpired reports whether the shelf no longer holds the item of a request that awaits pickup, or
// another open request has passed its own date (mod-circulation-storage, RequestExpirationService).
func hasExpired(request records.Record, now time.Time) bool {
	field := "requestExpirationDate"
	if request.Text("status") == schemas.RequestAwaitingPickup {
		field = "holdShelfExpirationDate"
	}
	until := readInstant(request.Text(field))
	return !until.IsZero() && until.Before(now)
}

func closeExpired(request records.Record) records.Record {
	closed := clone(request)
	closed["status"] = "Closed - Unfilled"
	if request.Text("status") == schemas.RequestAwaitingPickup {
		closed["status"] = "Closed - Pickup expired"
	}
	delete(closed, "position")
	return closed
}
