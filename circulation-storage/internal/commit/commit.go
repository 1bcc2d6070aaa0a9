package commit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Moment is when a transaction judges: the database's clock, read once, after the
// last row was locked.
type Moment struct{ Now time.Time }

// complete applies the records' rules to one that is about to be written.
func (m Moment) complete(ctx context.Context, t records.Type, r, stored records.Record) error {
	// No rule of a loan, nor of an item without Prepare, reads other records.
	return t.Complete(ctx, nil, records.Write{Record: r, Stored: stored, Now: m.Now, UserID: okapi.FromContext(ctx).UserID})
}

// completeItem is complete for an item that only changes its status. What an item
// takes from its holdings record stays, so that record is neither read nor
// locked: it would have to be locked before the item.
func (m Moment) completeItem(ctx context.Context, item, stored records.Record) error {
	t := records.Item()
	t.Prepare = nil
	records.StampStatus(records.Write{Record: item, Stored: stored, Now: m.Now})
	return m.complete(ctx, t, item, stored)
}

// Event is a row of the outbox: what happened, for whoever wants to know. It has
// ids and dates, and no names.
type Event struct {
	Type    string
	Payload map[string]string
}

// The types of events, as FOLIO names them.
const (
	ItemCheckedOut = "ITEM_CHECKED_OUT"
	ItemCheckedIn  = "ITEM_CHECKED_IN"
)

// newEvent leaves out what is empty.
func newEvent(ctx context.Context, kind string, payload map[string]string) Event {
	payload["requestId"] = okapi.FromContext(ctx).RequestID
	maps.DeleteFunc(payload, func(_, value string) bool { return value == "" })
	return Event{Type: kind, Payload: payload}
}

// clone copies a record so that its own properties can be replaced. Objects in it
// are shared, so they are replaced, never changed.
func clone(r records.Record) records.Record { return maps.Clone(r) }

func checkVersion(item records.Record, judged int) error {
	if stored, _ := item.Version(); stored != judged {
		return fault.New(fault.ItemChanged, "The item has changed: its _version is %d, not %d. Read it again", stored, judged)
	}
	return nil
}

func noItem(key string, id uuid.UUID) error {
	return invalid("there is no item with this id", key, id.String())
}

// invalid repeats no more than the start of a refused value.
func invalid(message, key, value string) error {
	return fault.StorageRefusal(message, fault.Param(key, fmt.Sprintf("%.100s", value)))
}

// id reads a UUID that the schema has checked; Nil when there is none.
func id(r records.Record, path string) uuid.UUID {
	parsed, _ := uuid.Parse(r.Text(path))
	return parsed
}

// integer reads an integer that the schema has checked; it may be written 2.0.
func integer(v any) int {
	n, _ := v.(json.Number)
	f, _ := strconv.ParseFloat(n.String(), 64)
	return int(f)
}
