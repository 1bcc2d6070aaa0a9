// Package cql makes conditions and orders in SQL of FOLIO's query language, CQL. It knows the
// indexes that it is given, and no tables.
package cql

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	syntax "github.com/indexdata/cql-go/cql"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// Bounds of a CQL query. mod-circulation asks for 50 ids at once, some 2 KB.
const (
	maxQueryBytes   = 16 << 10
	maxQueryClauses = 200 // comparisons, words and sort keys together
)

// Selection is a CQL query as SQL: a condition and an order, whose parameters $1, $2, … are
// Args. Nothing that a caller sent stands in the SQL itself.
type Selection struct {
	Where string
	Order string // "" or sort expressions, each followed by a comma and a blank
	Args  []any
	// Ignored are the sort keys that are no index.
	Ignored []string
}

// Bind adds a parameter and returns its placeholder with a cast. Without the cast, a
// connection in exec mode has to guess its type.
func (s *Selection) Bind(v any, sqlType string) string {
	s.Args = append(s.Args, v)
	return fmt.Sprintf("$%d::%s", len(s.Args), sqlType)
}

// Parse translates a CQL query on records that have the indexes. The empty query selects
// everything. The semantics are those of FOLIO's raml-module-builder, except for:
//
//   - It knows the given indexes only.
//   - Accents always count.
//   - Relation = with * finds the records that have the field, not all.
//   - It refuses a value that an index cannot hold. But an id that is no UUID matches
//     nothing.
//
// As FOLIO does, it ignores a sort key that is no index: clients write "sortby name desc".
//
// Fault: Malformed, which names the position or the cause.
func Parse(indexes map[string]records.Index, query string) (Selection, error) {
	if strings.TrimSpace(query) == "" {
		return Selection{Where: "true"}, nil
	}
	if len(query) > maxQueryBytes {
		return Selection{}, malformed("the query has %d bytes, at most %d are allowed", len(query), maxQueryBytes)
	}
	if !utf8.ValidString(query) || strings.ContainsRune(query, 0) {
		return Selection{}, malformed("the query holds a NUL character or is no valid UTF-8")
	}
	hidden, show := hideReplacement(query)
	// Not strict: words without quotation marks are one value, as FOLIO's clients write
	// status.name==Checked out.
	var parser syntax.Parser
	tree, err := parser.Parse(hidden)
	// FOLIO reads a quotation mark without its partner as the end, and ui-requests sends one: (name==x)")
	if rest, ok := strings.CutSuffix(hidden, `")`); ok && err != nil {
		hidden = rest
		tree, err = parser.Parse(hidden)
	}
	if err != nil {
		if at, ok := errors.AsType[*syntax.ParseError](err); ok {
			return Selection{}, malformed("%s at position %d", at.Message(), at.Pos())
		}
		return Selection{}, malformed("%v", err)
	}
	// The parser accepts the end of the query in place of a quotation mark. Then it also
	// accepts one parenthesis too many.
	if _, err := parser.Parse(hidden + ")"); err == nil {
		return Selection{}, malformed("the query ends within a quoted value or after a backslash, at position %d", len(query))
	}
	w := writer{indexes: indexes, show: show}
	if w.sel.Where, err = w.writeClause(tree.Clause); err != nil {
		return Selection{}, err
	}
	if err := w.writeOrder(tree.SortSpec); err != nil {
		return Selection{}, err
	}
	return w.sel, nil
}

// hideReplacement replaces U+FFFD by a character that the query does not hold. The parser
// reads that legal character as the end of the input. Function show undoes the
// replacement in a part of the query.
func hideReplacement(query string) (hidden string, show func(string) string) {
	const legal = string(utf8.RuneError)
	stand := '\uE000' // private use, which has more characters than a query can hold
	for strings.ContainsRune(query, stand) {
		stand++
	}
	return strings.ReplaceAll(query, legal, string(stand)), func(part string) string {
		return strings.ReplaceAll(part, string(stand), legal)
	}
}

func malformed(format string, args ...any) error {
	return fault.New(fault.Malformed, "CQL: %s", fmt.Sprintf(format, args...))
}
