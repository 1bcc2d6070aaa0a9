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

// Reader reads other records for a rule, within the transaction of the write.
type Reader interface {
	// Read returns the record with that id from a Type's Table and keeps it from
	// changing until the transaction ends. A missing one is a NotFound fault.
	Read(ctx context.Context, table, id string) (Record, error)
}

// Write is one record about to be written.
type Write struct {
	Record Record    // as Parse returned it; Complete sets its properties, changing none inside, so maps.Clone keeps a copy
	Stored Record    // what it replaces, locked; nil when the record is created
	Now    time.Time // the database's clock, read once for the whole write
	UserID string    // the acting user, "" for a system call
}

// Prepare applies a type's rules to a record about to be written: it fills in
// defaults and computed values, and refuses what breaks a rule.
type Prepare func(ctx context.Context, r Reader, w Write) error

// Parse reads a record from a request's body, checks it against the type's
// schema, and settles its id: id is the one in the path, "" for a POST. A body
// without id gets the path's, or a new one. Ids come out in lower case, as
// PostgreSQL writes them. An id that differs from the path's is an Invalid fault.
func (t Type) Parse(body []byte, id string) (Record, error) {
	r, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if err := jsonschema.Check(t.Schema, map[string]any(r)); err != nil {
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

// Complete makes w.Record what is to be stored: it checks and raises _version,
// writes metadata, and applies the type's own rules. Faults: Conflict for an old
// _version, those of the rules.
func (t Type) Complete(ctx context.Context, r Reader, w Write) error {
	if t.Versioned {
		if err := t.nextVersion(w); err != nil {
			return err
		}
	}
	stampMetadata(w)
	if t.Prepare == nil {
		return nil
	}
	return t.Prepare(ctx, r, w)
}

// nextVersion is RMB's optimistic locking; a missing _version is an old one too.
func (t Type) nextVersion(w Write) error {
	if w.Stored == nil {
		w.Record["_version"] = 1
		return nil
	}
	stored, _ := w.Stored.Version()
	sent, ok := w.Record.Version()
	if !ok || sent != stored {
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

// stampMetadata writes metadata as RMB does: who and when at the creation stays,
// who and when at the last write follows. What the client sent is dropped.
func stampMetadata(w Write) {
	now := w.Now.UTC().Format(schemas.FolioTime)
	m := Record{"createdDate": now, "updatedDate": now}
	m.set("createdByUserId", w.UserID)
	m.set("updatedByUserId", w.UserID)
	if date := w.Stored.Text("metadata.createdDate"); date != "" {
		m.set("createdDate", date)
		m.set("createdByUserId", w.Stored.Text("metadata.createdByUserId"))
	}
	w.Record["metadata"] = map[string]any(m)
}
