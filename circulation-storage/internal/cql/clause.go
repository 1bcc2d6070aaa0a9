package cql

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	syntax "github.com/indexdata/cql-go/cql"

	"checkoutlock/circulation-storage/internal/records"
)

// writer writes one query.
type writer struct {
	indexes map[string]records.Index
	show    func(string) string // see hideReplacement
	sel     Selection
	count   int // of clauses
}

// countClauses refuses a query with too many clauses; n more are about to be written.
func (w *writer) countClauses(n int) error {
	if w.count += n; w.count > maxQueryClauses {
		return malformed("the query has more than %d comparisons, words and sort keys", maxQueryClauses)
	}
	return nil
}

func (w *writer) writeClause(c syntax.Clause) (string, error) {
	switch {
	case len(c.PrefixMap) > 0:
		return "", malformed("prefix assignments (>) are not supported")
	case c.BoolClause != nil:
		return w.writeBoolean(*c.BoolClause)
	}
	if err := w.countClauses(1); err != nil {
		return "", err
	}
	return w.writeSearch(*c.SearchClause)
}

// writeBoolean joins two clauses. A comparison with a field that a record lacks is NULL
// in SQL and "does not match" in CQL, so "not" becomes IS NOT TRUE.
func (w *writer) writeBoolean(b syntax.BoolClause) (string, error) {
	var join string
	switch b.Operator {
	case syntax.AND:
		join = "(%s AND %s)"
	case syntax.OR:
		join = "(%s OR %s)"
	case syntax.NOT:
		join = "(%s AND (%s) IS NOT TRUE)"
	default:
		return "", malformed("operator %q is not supported; allowed are and, or, not", b.Operator)
	}
	if len(b.Modifiers) > 0 {
		return "", malformed("operator %s takes no modifiers", b.Operator)
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
func (w *writer) writeSearch(s syntax.SearchClause) (string, error) {
	term := w.show(s.Term)
	if strings.EqualFold(s.Index, string(syntax.AllRecords)) {
		return "true", nil
	}
	if s.Index == string(syntax.ServerChoice) {
		return "", malformed("name the index to look for %q in; allowed are %s", term, w.listIndexes())
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
	if f.index.Kind == records.Text {
		return w.compareText(f, relation, term, foldCase)
	}
	return w.compareValue(f, relation, term)
}

// readModifiers reports whether a comparison ignores case.
func readModifiers(modifiers []syntax.Modifier) (foldCase bool, err error) {
	foldCase = true
	for _, m := range modifiers {
		switch strings.ToLower(m.Name) {
		case "respectcase":
			foldCase = false
		case "ignorecase", "respectaccents", "masked", "string", "number": // as always: the index's kind counts
		default:
			const allowed = "ignoreCase, respectCase, respectAccents, masked, string, number"
			return false, malformed("modifier %q is not supported; allowed are %s", m.Name, allowed)
		}
	}
	return foldCase, nil
}

// writeOrder writes the sort keys, and notes those that are no index.
func (w *writer) writeOrder(keys []syntax.Sort) error {
	if err := w.countClauses(len(keys)); err != nil {
		return err
	}
	var sb strings.Builder
	for _, key := range keys {
		f, err := w.findField(key.Index)
		if err != nil {
			w.sel.Ignored = append(w.sel.Ignored, w.show(key.Index))
			continue
		}
		order := ""
		for _, m := range key.Modifiers {
			switch strings.ToLower(m.Name) {
			case "sort.descending", "descending":
				order = " DESC"
			case "sort.ascending", "ascending":
				order = ""
			case "number", "string", "ignorecase": // as always: the index's kind counts
			default:
				const allowed = "sort.ascending, sort.descending, number, string, ignoreCase"
				return malformed("sort modifier %q is not supported; allowed are %s", m.Name, allowed)
			}
		}
		sb.WriteString(f.comparand() + order + ", ")
	}
	w.sel.Order = sb.String()
	return nil
}

// lastStep is the name of a property below an index that ends with ".*".
var lastStep = regexp.MustCompile(`^[\w-]+$`)

// findField finds an index by its name.
func (w *writer) findField(name string) (field, error) {
	index, ok := w.indexes[name]
	if parent, step, _ := strings.Cut(name, "."); !ok && lastStep.MatchString(step) {
		index, ok = w.indexes[parent+".*"]
	}
	if !ok {
		return field{}, malformed("unknown index %q; allowed are %s", w.show(name), w.listIndexes())
	}
	return field{name: name, index: index}, nil
}

func (w *writer) listIndexes() string {
	names := slices.Sorted(maps.Keys(w.indexes))
	return strings.Join(append(names, string(syntax.AllRecords)), ", ")
}
