// Package records knows FOLIO's record types: one table of them, and the rules
// that each record obeys whoever writes it. It knows neither SQL nor HTTP.
package records

import "checkoutlock/schemas/fault"

// Type describes one kind of record. An entry in the table of types is all that
// a new kind needs, beside its JSON Schema and its migration.
type Type struct {
	// Name is the singular name, for messages: "item".
	Name string
	// Path is the collection's path: "/item-storage/items".
	Path string
	// Collection is the key of the list in a collection's answer: "items".
	Collection string
	// Table is the name of the database table: "item".
	Table string
	// Schema is the name of the JSON Schema that checks what comes in.
	Schema string
	// Permission is the prefix of the permission names; ".collection.get",
	// ".item.get", ".item.post", ".item.put" and ".item.delete" follow.
	Permission string
	// Indexes is what CQL may ask for, by the index's name: a JSON path with dots.
	Indexes map[string]Index
	// Unique lists what no two records may share.
	Unique []Unique
	// References lists the records that must exist before this one may name them.
	References []Reference
	// Versioned records carry _version, kept by Complete: 1 at first, one more at
	// each write, and a PUT must show the stored one.
	Versioned bool
	// Upsert lets a PUT with an unknown id create the record (FOLIO's loans).
	Upsert bool
	// Prepare applies the type's own rules; nil means none. Complete calls it.
	Prepare Prepare
}

// Kind is how CQL compares an index.
type Kind int

// The kinds of indexes.
const (
	Text    Kind = iota // compared without regard to case
	UUID                // compared as an id; anything else matches nothing
	Boolean             // true or false
	Number
	Time // what schemas.ParseTime reads, compared as instants; without an offset it is UTC
)

// Index is one thing that CQL may ask for.
type Index struct {
	Kind Kind
	// Column is the generated column that holds the value; empty means that it is
	// read from the JSON.
	Column string
}

// Unique is a value, or a combination, that no two records of a type share.
type Unique struct {
	Constraint string   // name of the unique index
	Fields     []string // JSON paths
	// Message says what is wrong; empty means "<field> value already exists in
	// table <table>: <value>".
	Message string
	// Code is the fault's code, for a plain text answer; empty means Invalid,
	// answered as FOLIO's errors JSON with the fields as parameters.
	Code fault.Code
}

// Reference is a field that names a record of another type.
type Reference struct {
	Constraint string // name of the foreign key
	Field      string // JSON path
	To         string // Table of the other type
}
