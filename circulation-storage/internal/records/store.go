package records

import (
	"context"
	"encoding/json"
)

// Store keeps the records of the tenant in ctx. Every call is one transaction:
// it happens wholly or not at all. Records handed in come from Type.Parse and are
// not changed.
type Store interface {
	// Create stores a new record and returns it as stored. Faults: Invalid for a
	// value that another record has or a reference to a missing one, those of the
	// type's rules.
	Create(ctx context.Context, t Type, r Record) (json.RawMessage, error)
	// Get returns the record with that id. Fault: NotFound.
	Get(ctx context.Context, t Type, id string) (json.RawMessage, error)
	// List gives a page of the records that match to out, in the order that the query
	// asks for, else by id. A long page is given while it is read. Faults: Malformed
	// for a query that cannot be understood, Overloaded when too many long pages are
	// under way; those of out. After a fault out may have a part of the page.
	List(ctx context.Context, t Type, p Page, out Sink) error
	// Update replaces the record with r's id; if there is none and t.Upsert, it
	// creates it. Faults: those of Create, NotFound, Conflict for an old _version.
	Update(ctx context.Context, t Type, r Record) error
	// Delete removes a record. Faults: NotFound, Malformed while another record
	// refers to it.
	Delete(ctx context.Context, t Type, id string) error
	// DeleteMatching removes the records that match a CQL query. Fault: Malformed for
	// a query that is empty or cannot be understood, and while a record of another
	// type refers to a match; then nothing is removed.
	DeleteMatching(ctx context.Context, t Type, query string) error
}

// Page says which records of a collection to list.
type Page struct {
	Query  string // CQL; empty means all
	Offset int    // records to skip
	Limit  int    // records to return at most
	// NoTotal spares counting all matches; the total is 0 then.
	NoTotal bool
}

// Sink takes a page of records. An error of it ends the page.
type Sink interface {
	// Begin is called once, before the records, with how many match in all.
	Begin(total int) error
	// Record is called for each record.
	Record(doc json.RawMessage) error
}
