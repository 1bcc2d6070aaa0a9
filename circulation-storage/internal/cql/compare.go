package cql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/jsonschema"
)

// compareValue compares an index that is no text.
func (w *writer) compareValue(f field, relation, term string) (string, error) {
	op := relation
	switch relation {
	case "<", "<=", ">", ">=", "<>", "=":
	case "==", "exact":
		op = "="
	default:
		return "", malformed("index %q cannot be compared by %q; allowed are =, ==, <>, <, <=, >, >=", f.name, relation)
	}
	// Clients write > "" for records that have the field.
	if op == "=" && (term == "*" || term == "" && relation == "=") || term == "" && (op == ">" || op == "<>") {
		return f.asText() + " IS NOT NULL", nil
	}
	value := unescape(term)
	if f.index.Kind == records.UUID && relation == "=" {
		value = strings.Trim(value, "'*") // FOLIO compares words: apostrophes separate them, and a * stands for nothing after a whole id
	}
	v, sqlType, err := f.parseTerm(value)
	switch {
	case err != nil:
		return "", err
	case v == nil && op == "<>": // every id differs from one that is no UUID
		return f.asText() + " IS NOT NULL", nil
	case v == nil:
		return "false", nil
	}
	return fmt.Sprintf("%s %s %s", f.comparand(), op, w.sel.Bind(v, sqlType)), nil
}

var numberPattern = regexp.MustCompile(`^-?\d{1,30}(\.\d{1,30})?$`)

// parseTerm reads a term as a value of the field's kind. It returns the SQL type to bind
// it with. An id that is no UUID is nil.
func (f field) parseTerm(term string) (v any, sqlType string, err error) {
	switch f.index.Kind {
	case records.UUID:
		id, err := uuid.Parse(term)
		switch {
		case err != nil || len(term) != len(uuid.Nil.String()):
			return nil, "", nil
		case f.index.Column != "":
			return id.String(), "uuid", nil
		}
		return id.String(), "text", nil
	case records.Boolean:
		b := strings.ToLower(term)
		if b != "true" && b != "false" {
			return nil, "", malformed("index %q is compared with %q; allowed are true and false", f.name, term)
		}
		return b, "text", nil
	case records.Number:
		if !numberPattern.MatchString(term) {
			return nil, "", malformed("index %q is compared with %q; a number is expected", f.name, term)
		}
		return term, "numeric", nil
	case records.Time:
		at, err := jsonschema.ParseTime(term)
		if err != nil {
			return nil, "", malformed("index %q is compared with %q; the value %v", f.name, term, err)
		}
		return at.UTC(), "timestamptz", nil
	case records.Text:
	}
	return term, "text", nil
}

// compareText compares a text index.
func (w *writer) compareText(f field, relation, term string, foldCase bool) (string, error) {
	fold := func(expr string) string {
		if foldCase {
			return "lower(" + expr + ")"
		}
		return expr
	}
	if f.index.ISBN {
		term = strings.ReplaceAll(term, "-", "")
	}
	value := fold(f.asText())
	switch relation {
	case "==", "exact":
		pattern, masked := likePattern(term)
		switch {
		case term == "*":
			return f.asText() + " IS NOT NULL", nil
		case masked:
			return value + " LIKE " + fold(w.sel.Bind(pattern, "text")), nil
		}
		return value + " = " + fold(w.sel.Bind(unescape(term), "text")), nil
	case "<>":
		pattern, _ := likePattern(term)
		return value + " NOT LIKE " + fold(w.sel.Bind(pattern, "text")), nil
	case "<", "<=", ">", ">=":
		return value + " " + relation + " " + fold(w.sel.Bind(unescape(term), "text")), nil
	case "=", "adj", "scr": // a phrase; a * that stands alone is no word of it
		words := slices.DeleteFunc(splitWords(term), func(word string) bool { return word == "*" })
		if len(words) > 0 {
			words = []string{strings.Join(words, " ")}
		}
		return w.matchWords(f, words, "", fold)
	case "any":
		return w.matchWords(f, splitWords(term), " OR ", fold)
	case "all":
		return w.matchWords(f, splitWords(term), " AND ", fold)
	}
	return "", malformed("relation %q is not supported; allowed are =, ==, <>, <, <=, >, >=, all, any, adj", relation)
}

// matchWords matches words anywhere in the text. A wildcard stands for letters at an end
// of a word, and for any characters within one.
func (w *writer) matchWords(f field, words []string, join string, fold func(string) string) (string, error) {
	if err := w.countClauses(len(words)); err != nil {
		return "", err
	}
	if len(words) == 0 { // any record that has the field
		return f.asText() + " IS NOT NULL", nil
	}
	text := fmt.Sprintf("(' ' || regexp_replace(%s, '[%s]+', ' ', 'g') || ' ')", fold(f.asText()), separatorClass())
	parts := make([]string, len(words))
	for i, word := range words {
		pattern, _ := likePattern(word)
		parts[i] = text + " LIKE " + fold(w.sel.Bind("% "+pattern+" %", "text"))
	}
	return "(" + strings.Join(parts, join) + ")", nil
}
