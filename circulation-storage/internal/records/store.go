package records

import (
	"context"
	"encoding/json"
	"time"

	"checkoutlock/schemas"
)

// Store keeps the records of the tenant in ctx. Every call is one transaction. It takes
// records from Type.Parse and does not change them.
type Store interface {
	// Create stores a new record and returns it as stored. If t.Named, it replaces the record of
	// the same name. Faults: Invalid for a duplicate value or a reference to a missing record;
	// those of the type's rules.
	Create(ctx context.Context, t Type, r Record) (json.RawMessage, error)
	// Get returns the record with that id. Fault: NotFound.
	Get(ctx context.Context, t Type, id string) (json.RawMessage, error)
	// List writes a page of the matching records to out, in the order of the query, else
	// by id. It streams long pages. Faults: Malformed for a bad query, Overloaded if too
	// many long pages are being read; those of out. After a fault out may have received
	// a part of the page.
	List(ctx context.Context, t Type, p Page, out Sink) error
	// Update replaces the record with r's id, or creates it if t.Upsert. Faults: those
	// of Create, NotFound, Conflict for an old _version.
	Update(ctx context.Context, t Type, r Record) error
	// Delete removes a record. Faults: NotFound, Invalid if another record names it.
	Delete(ctx context.Context, t Type, id string) error
	// DeleteMatching removes all records that match a CQL query, or none. Faults:
	// Malformed for an empty or bad query, Invalid if another record names a match.
	DeleteMatching(ctx context.Context, t Type, query string) error
	// PutRequests replaces or creates all of the requests or none.
	PutRequests(ctx context.Context, requests []Record) error
	// ExpiredSessions returns the sessions whose last record is from before the time, the oldest
	// first. An empty action type stands for all.
	ExpiredSessions(ctx context.Context, actionType string, before time.Time, limit int) ([]Session, error)
	// AddPrint adds a print of slips, and notes it in those of the requests that exist.
	AddPrint(ctx context.Context, p Print) error
	// LastPrints returns the last print of each of the requests that has one, in the order of their ids.
	LastPrints(ctx context.Context, requestIDs []string) ([]LastPrint, error)
	// AnonymizeLoans takes patron and proxy off those of the loans that are closed, and off their
	// history. AnonymizeLoansOf does it to all closed loans of a patron.
	AnonymizeLoans(ctx context.Context, ids []string) error
	AnonymizeLoansOf(ctx context.Context, userID string) error
}

// Page selects records of a collection.
type Page struct {
	Query  string // CQL; empty means all
	Offset int    // records to skip
	Limit  int    // records to return at most
	Total  Total
}

// Total says how a list counts all matches.
type Total int

const (
	// TotalEstimated counts up to MaxCounted matches, and estimates more from the table's
	// statistics, as FOLIO's auto does: an exact count reads every match.
	TotalEstimated Total = iota
	// TotalExact counts all matches.
	TotalExact
	// TotalNone counts nothing; the total is 0.
	TotalNone
)

// MaxCounted is up to how many matches TotalEstimated counts exactly (raml-module-builder's
// limit too).
const MaxCounted = 1000

// Sink receives a page of records. Its error ends the page.
type Sink interface {
	// Begin is called once, before the records, with the number of all matches.
	Begin(total int) error
	// Record is called for each record.
	Record(doc json.RawMessage) error
}

// Reader reads other records for a rule, within the transaction of the write.
type Reader interface {
	// Read returns the record with that id from a Type's Table and locks it against
	// changes until the transaction ends. Fault: NotFound.
	Read(ctx context.Context, table, id string) (Record, error)
}

// RulesStore keeps the circulation rules of the tenant in ctx.
type RulesStore interface {
	Rules(ctx context.Context) (schemas.CirculationRules, error)
	// SetRules replaces the text. It does not compile the text. If policiesExist is set, it
	// refuses a text that names a missing policy. Fault: Invalid.
	SetRules(ctx context.Context, text string, policiesExist bool) error
}
