// Package schemas is the wire contract between circulation and
// circulation-storage and with FOLIO's clients: Go structs, JSON Schemas and the
// rules for values that both services must judge alike.
package schemas
