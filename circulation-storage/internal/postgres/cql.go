package postgres

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/indexdata/cql-go/cql"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// Bounds of a CQL query. mod-circulation asks for 50 ids at once, some 2 KB.
const (
	maxQueryBytes   = 16 << 10
	maxQueryClauses = 200 // comparisons, words and sort keys together
)

// selection is a CQL query as SQL: a condition and an order, whose parameters
// $1, $2, … are args. Nothing that a caller sent stands in the SQL itself.
type selection struct {
	where string
	order string // "" or sort expressions, each followed by a comma and a blank
	args  []any
	// ignored are the sort keys that are no index.
	ignored []string
}

// parseCQL translates a CQL query on records of type t. The empty query selects
// everything. The semantics are those of FOLIO's raml-module-builder, except for:
//
//   - It knows the type's indexes only.
//   - Accents always count.
//   - It refuses a value that an index cannot hold. But an id that is no UUID matches
//     nothing.
//
// As FOLIO does, it ignores a sort key that is no index: clients write "sortby name desc".
//
// Fault: Malformed, which names the position or the cause.
func parseCQL(t records.Type, query string) (selection, error) {
	if strings.TrimSpace(query) == "" {
		return selection{where: "true"}, nil
	}
	if len(query) > maxQueryBytes {
		return selection{}, badCQL("the query has %d bytes, at most %d are allowed", len(query), maxQueryBytes)
	}
	if !utf8.ValidString(query) || strings.ContainsRune(query, 0) {
		return selection{}, badCQL("the query holds a NUL character or is no valid UTF-8")
	}
	hidden, show := hideReplacement(query)
	// Not strict: words without quotation marks are one value, as FOLIO's clients write
	// status.name==Checked out.
	var parser cql.Parser
	tree, err := parser.Parse(hidden)
	if err != nil {
		if at, ok := errors.AsType[*cql.ParseError](err); ok {
			return selection{}, badCQL("%s at position %d", at.Message(), at.Pos())
		}
		return selection{}, badCQL("%v", err)
	}
	// The parser accepts the end of the query in place of a quotation mark. Then it also
	// accepts one parenthesis too many.
	if _, err := parser.Parse(hidden + ")"); err == nil {
		return selection{}, badCQL("the query ends within a quoted value or after a backslash, at position %d", len(query))
	}
	w := cqlWriter{t: t, show: show}
	where, err := w.writeClause(tree.Clause)
	if err != nil {
		return selection{}, err
	}
	order, ignored, err := w.writeOrder(tree.SortSpec)
	if err != nil {
		return selection{}, err
	}
	return selection{where: where, order: order, args: w.args, ignored: ignored}, nil
}

// hideReplacement replaces U+FFFD by a character that the query does not hold. The parser
// reads that legal character as the end of the input. Function show undoes the
// replacement in a part of the query.
func hideReplacement(query string) (hidden string, show func(string) string) {
	const legal = string(utf8.RuneError)
	if !strings.Contains(query, legal) {
		return query, func(part string) string { return part }
	}
	stand := '\uE000' // private use, which has more characters than a query can hold
	for strings.ContainsRune(query, stand) {
		stand++
	}
	return strings.ReplaceAll(query, legal, string(stand)), func(part string) string {
		return strings.ReplaceAll(part, string(stand), legal)
	}
}

func badCQL(format string, args ...any) error {
	return fault.New(fault.Malformed, "CQL: %s", fmt.Sprintf(format, args...))
}

// cqlWriter writes one query and collects its parameters.
type cqlWriter struct {
	t     records.Type
	show  func(string) string // see hideReplacement
	args  []any
	count int
}

// bind adds a parameter and returns its placeholder with a cast. Without the cast, a
// connection in exec mode has to guess its type.
func (w *cqlWriter) bind(v any, sqlType string) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d::%s", len(w.args), sqlType)
}

// countClauses refuses a query with too many clauses; n more are about to be written.
func (w *cqlWriter) countClauses(n int) error {
	if w.count += n; w.count > maxQueryClauses {
		return badCQL("the query has more than %d comparisons, words and sort keys", maxQueryClauses)
	}
	return nil
}

func (w *cqlWriter) writeClause(c cql.Clause) (string, error) {
	switch {
	case len(c.PrefixMap) > 0:
		return "", badCQL("prefix assignments (>) are not supported")
	case c.BoolClause != nil:
		return w.writeBoolean(*c.BoolClause)
	case c.SearchClause != nil:
		if err := w.countClauses(1); err != nil {
			return "", err
		}
		return w.writeSearch(*c.SearchClause)
	}
	return "true", nil
}

// writeBoolean joins two clauses. A comparison with a field that a record lacks is NULL
// in SQL and "does not match" in CQL, so "not" becomes IS NOT TRUE.
func (w *cqlWriter) writeBoolean(b cql.BoolClause) (string, error) {
	var join string
	switch b.Operator {
	case cql.AND:
		join = "(%s AND %s)"
	case cql.OR:
		join = "(%s OR %s)"
	case cql.NOT:
		join = "(%s AND (%s) IS NOT TRUE)"
	default:
		return "", badCQL("operator %q is not supported; allowed are and, or, not", b.Operator)
	}
	if len(b.Modifiers) > 0 {
		return "", badCQL("operator %s takes no modifiers", b.Operator)
	}
	left, err := w.writeClause(b.Left)
	if err != nil {
		return "", err
	}
	right, err := w.writeClause(b.Right)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(join, left, right), nil
}

// writeSearch writes one comparison.
func (w *cqlWriter) writeSearch(s cql.SearchClause) (string, error) {
	term := w.show(s.Term)
	if strings.EqualFold(s.Index, string(cql.AllRecords)) {
		return "true", nil
	}
	if s.Index == string(cql.ServerChoice) {
		return "", badCQL("name the index to look for %q in; allowed are %s", term, w.listIndexes())
	}
	f, err := w.findField(s.Index)
	if err != nil {
		return "", err
	}
	foldCase, err := readModifiers(s.Modifiers)
	if err != nil {
		return "", err
	}
	relation := strings.ToLower(string(s.Relation))
	if f.kind == records.Text {
		return w.compareText(f, relation, term, foldCase)
	}
	return w.compareValue(f, relation, term)
}

// readModifiers reports whether a comparison ignores case.
func readModifiers(modifiers []cql.Modifier) (foldCase bool, err error) {
	foldCase = true
	for _, m := range modifiers {
		switch strings.ToLower(m.Name) {
		case "respectcase":
			foldCase = false
		case "ignorecase", "respectaccents", "masked": // as always
		default:
			return false, badCQL("modifier %q is not supported; allowed are ignoreCase, respectCase, respectAccents, masked", m.Name)
		}
	}
	return foldCase, nil
}

// writeOrder writes the sort keys and returns those that are no index.
func (w *cqlWriter) writeOrder(keys []cql.Sort) (order string, ignored []string, err error) {
	if err := w.countClauses(len(keys)); err != nil {
		return "", nil, err
	}
	var sb strings.Builder
	for _, key := range keys {
		f, err := w.findField(key.Index)
		if err != nil {
			ignored = append(ignored, w.show(key.Index))
			continue
		}
		sb.WriteString(f.comparand())
		for _, m := range key.Modifiers {
			switch strings.ToLower(m.Name) {
			case "sort.descending", "descending":
				sb.WriteString(" DESC")
			case "sort.ascending", "ascending":
			default:
				return "", nil, badCQL("sort modifier %q is not supported; allowed are sort.ascending, sort.descending", m.Name)
			}
		}
		sb.WriteString(", ")
	}
	return sb.String(), ignored, nil
}

// findField finds an index in the type's list.
func (w *cqlWriter) findField(name string) (field, error) {
	index, ok := w.t.Indexes[name]
	if !ok {
		return field{}, badCQL("unknown index %q; allowed are %s", w.show(name), w.listIndexes())
	}
	return field{name: name, kind: index.Kind, column: index.Column, parts: index.Parts}, nil
}

func (w *cqlWriter) listIndexes() string {
	names := slices.Sorted(maps.Keys(w.t.Indexes))
	return strings.Join(append(names, string(cql.AllRecords)), ", ")
}
