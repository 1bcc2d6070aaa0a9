// Package records holds the table of FOLIO's record types and the rules that each write
// of a record obeys. It knows neither SQL nor HTTP.
package records

import (
	"context"
	"strings"
	"unicode"

	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// Type describes one kind of record. A new kind needs an entry in the table of types,
// a JSON Schema and a migration. Nothing of those in this package may be changed.
type Type struct {
	// Name is the singular name, for messages: "item".
	Name string
	// Path is the collection's path: "/item-storage/items".
	Path string
	// Collection is the key of the list in a collection's answer: "items".
	Collection string
	// Table is the name of the database table: "item".
	Table string
	// Schema is the name of the JSON Schema of request bodies.
	Schema string
	// Permission is the prefix of the permission names; ".collection.get",
	// ".item.get", ".item.post", ".item.put" and ".item.delete" follow.
	Permission string
	// Interface is FOLIO's interface with its version, as web.Route has it.
	Interface string
	// Indexes lists what CQL may search, by the index's name: a JSON path with dots.
	Indexes map[string]Index
	// Unique lists the values that no two records may share.
	Unique []Unique
	// References lists the fields that must name existing records.
	References []Reference
	// Versioned records have a _version: Complete sets it to 1 and increases it with each
	// write, and a PUT must send the stored one.
	Versioned bool
	// NewestFirst lists records by createdDate, the newest first, if a query names no sort keys
	// (FOLIO's history of loans).
	NewestFirst bool
	// Upsert lets a PUT with an unknown id create the record, where FOLIO does.
	Upsert bool
	// Lists are the properties that are empty lists if a record lacks them, as in FOLIO: its pages
	// read them unasked.
	Lists []string
	// Named lets a POST replace the record of the same name, which keeps its id (FOLIO's
	// circulation settings).
	Named bool
	// Prepare applies the type's own rules in Complete: it sets defaults and computed values, and
	// refuses a record that breaks a rule. nil means none.
	Prepare func(ctx context.Context, r Reader, w Write) error
}

// Kind is how CQL compares an index.
type Kind int

// The kinds of indexes.
const (
	Text    Kind = iota // compared without regard to case
	UUID                // compared as an id; anything else matches nothing
	Boolean             // true or false
	Number
	Time // read by jsonschema.ParseTime and compared as instants; UTC if it has no offset
)

// Index is a value that CQL may search.
type Index struct {
	Kind Kind
	// Column is the generated column that holds the value; empty means that the value
	// is read from the JSON.
	Column string
	// Parts are the JSON paths whose values a Text index joins; empty means the path that
	// names the index. One that begins with $ is a path of PostgreSQL to several values.
	Parts []string
	// Of is the table of the record that Column names, for a value of that record: the last step of
	// the index's name.
	Of string
	// ISBN says that hyphens and blanks between digits do not count, as in FOLIO.
	ISBN bool
}

// Unique is a value, or a combination, that no two records of a type share.
type Unique struct {
	Constraint string   // name of the unique index
	Fields     []string // JSON paths
	// Message is the text of the fault; empty means "<field> value already exists in
	// table <table>: <value>".
	Message string
	// Code is the code of a fault that is answered as text; empty means Invalid,
	// answered as FOLIO's errors JSON with the fields as parameters.
	Code fault.Code
	// DetailCode is the code in FOLIO's errors JSON; empty means "-1", that of RMB.
	DetailCode string
}

// fields lists indexes that are read from the JSON, by their kind.
type fields map[Kind][]string

// indexes is the value of Type.Indexes.
type indexes map[string]Index

// newIndexes returns the listed indexes and those that every record has. Each of ids is an
// index with a generated column.
func newIndexes(listed fields, ids ...string) indexes {
	all := indexes{
		"id":                       {Kind: UUID, Column: "id"},
		"metadata.createdDate":     {Kind: Time},
		"metadata.updatedDate":     {Kind: Time},
		"metadata.createdByUserId": {Kind: UUID},
		"metadata.updatedByUserId": {Kind: UUID},
	}
	for kind, names := range listed {
		for _, name := range names {
			all[name] = Index{Kind: kind}
		}
	}
	for _, name := range ids {
		all[name] = Index{Kind: UUID, Column: snakeCase(name)}
	}
	return all
}

// inColumns gives the indexes generated columns of the same names in snake case.
func (all indexes) inColumns(names ...string) indexes {
	for _, name := range names {
		all[name] = Index{Kind: all[name].Kind, Column: snakeCase(name)}
	}
	return all
}

// with adds an index that newIndexes cannot describe.
func (all indexes) with(name string, index Index) indexes {
	all[name] = index
	return all
}

// uniqueFields returns one Unique for each of the fields.
func uniqueFields(table string, fields ...string) []Unique {
	return convert.All(fields, func(field string) Unique {
		return Unique{Constraint: table + "_" + snakeCase(field) + "_key", Fields: []string{field}}
	})
}

// snakeCase returns the name that a field has in SQL: of a path its last step.
func snakeCase(field string) string {
	var b strings.Builder
	for _, r := range field[strings.LastIndexByte(field, '.')+1:] {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
