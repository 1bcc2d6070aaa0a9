package storageclient

import "strings"

// cqlEscaper escapes what has a meaning inside a quoted CQL term: the quote and
// the backslash, the wildcards * and ?, and the anchor ^ (CQL 1.2, "Masking
// rules").
var cqlEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, `^`, `\^`)

// term is value as a CQL term that matches exactly it.
func term(value string) string { return `"` + cqlEscaper.Replace(value) + `"` }

// equals is the clause that index is value.
func equals(index, value string) string { return index + "==" + term(value) }

// anyOf is the clause that index is one of values, of which there is at least one.
func anyOf(index string, values []string) string {
	terms := make([]string, len(values))
	for i, v := range values {
		terms[i] = term(v)
	}
	return index + "==(" + strings.Join(terms, " or ") + ")"
}
