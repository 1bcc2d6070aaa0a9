package records

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Write is one record about to be written.
type Write struct {
	Record Record    // from Parse; Complete replaces top-level properties only, so maps.Clone keeps a copy
	Stored Record    // the locked record to replace; nil for a new record
	Now    time.Time // the database's clock, read once for the whole write
	UserID string    // the acting user; "" for a system call
}

// Parse reads a record from a request's body and checks it against the type's schema.
// id is the one in the path, "" for a POST. A body without id gets the path's, or a new
// one. Ids are lower case, as PostgreSQL writes them. Fault: Invalid, also for an id
// other than the path's.
func (t Type) Parse(body []byte, id string) (Record, error) {
	r, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if err := jsonschema.CheckRecord(t.Schema, r); err != nil {
		return nil, err
	}
	sent := r.ID()
	switch {
	case sent == "" && id == "":
		sent = uuid.NewString()
	case sent == "":
		sent = id
	case id != "" && !strings.EqualFold(sent, id):
		return nil, fault.StorageRefusal("id in the body must be the id in the path, "+fault.Shown(id), fault.Param("id", sent))
	}
	r["id"] = strings.ToLower(sent)
	return r, nil
}

// Complete makes w.Record ready to be stored: it checks and increases _version, sets
// metadata and Lists, and applies the type's own rules. Faults: Conflict for an old _version;
// those of the rules.
func (t Type) Complete(ctx context.Context, r Reader, w Write) error {
	if t.Versioned {
		if err := t.increaseVersion(w); err != nil {
			return err
		}
	}
	stampMetadata(w)
	for _, list := range t.Lists {
		if w.Record[list] == nil {
			w.Record[list] = []any{}
		}
	}
	if t.Prepare == nil {
		return nil
	}
	return t.Prepare(ctx, r, w)
}

// increaseVersion is RMB's optimistic locking. A missing _version counts as an old one, unless the stored
// record has none either: FOLIO's older records get one when they change.
func (t Type) increaseVersion(w Write) error {
	if w.Stored == nil {
		w.Record["_version"] = 1
		return nil
	}
	stored, versioned := w.Stored.Version()
	sent, ok := w.Record.Version()
	if !ok && versioned || sent != stored {
		shown := "absent"
		if ok {
			shown = fault.Shown(w.Record["_version"])
		}
		return fault.New(fault.Conflict, "Cannot update %s record %s because it has been changed (optimistic locking): "+
			"Stored _version is %d, _version of request is %s", t.Name, w.Record.ID(), stored, shown)
	}
	w.Record["_version"] = stored + 1
	return nil
}

// stampMetadata sets metadata as RMB does: user and time of the creation stay, user and
// time of the last write change. The client's metadata is ignored.
func stampMetadata(w Write) {
	now := w.Now.UTC().Format(schemas.FolioTime)
	m := Record{"createdDate": now, "updatedDate": now}
	m.Set("createdByUserId", w.UserID)
	m.Set("updatedByUserId", w.UserID)
	if date := w.Stored.Text("metadata.createdDate"); date != "" {
		m.Set("createdDate", date)
		m.Set("createdByUserId", w.Stored.Text("metadata.createdByUserId"))
	}
	w.Record["metadata"] = map[string]any(m)
}
