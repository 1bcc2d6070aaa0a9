package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// field is an index as SQL sees it.
type field struct {
	name   string // JSON path with dots
	kind   records.Kind
	column string // the column that holds the value, "" when the JSON does
}

// asText is the field's value as text, NULL when the record has none. It is
// written exactly as in the expressions that the migrations index.
func (f field) asText() string {
	if f.column != "" {
		return f.column
	}
	return f.path("->>")
}

// path leads to the field in the JSON; the last step is taken with arrow.
func (f field) path(arrow string) string {
	steps := strings.Split(f.name, ".")
	last := len(steps) - 1
	var sb strings.Builder
	sb.WriteString("jsonb")
	for _, step := range steps[:last] {
		sb.WriteString("->" + quoteLiteral(step))
	}
	return sb.String() + arrow + quoteLiteral(steps[last])
}

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Dates are stored as schemas.ParseTime takes them. The first pattern keeps a cast
// from failing on anything else, the second tells the dates that name their zone
// from those that mean UTC, whatever the session's zone is.
const (
	datePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$`
	zonePattern = `T.*(Z|[+-][0-9]{2}:?[0-9]{2})$`
)

// comparand is the field's value in the type that it is compared and sorted in.
func (f field) comparand() string {
	if f.column != "" {
		return f.column
	}
	switch f.kind {
	case records.Number:
		return fmt.Sprintf("(CASE WHEN jsonb_typeof(%s) = 'number' THEN (%s)::numeric END)", f.path("->"), f.asText())
	case records.Time:
		return fmt.Sprintf("(CASE WHEN %[1]s !~ '%[2]s' THEN NULL WHEN %[1]s ~ '%[3]s' THEN (%[1]s)::timestamptz"+
			" ELSE (%[1]s)::timestamp AT TIME ZONE 'UTC' END)", f.asText(), datePattern, zonePattern)
	case records.Text, records.UUID:
		return "lower(" + f.asText() + ")"
	case records.Boolean:
	}
	return f.asText()
}

// value compares an index that is no text.
func (w *cqlWriter) value(f field, relation, term string) (string, error) {
	op := relation
	switch relation {
	case "<", "<=", ">", ">=", "<>", "=":
	case "==", "exact":
		op = "="
	default:
		return "", badCQL("index %q cannot be compared by %q; allowed are =, ==, <>, <, <=, >, >=", f.name, relation)
	}
	if op == "=" && (term == "*" || (term == "" && relation == "=")) {
		return f.asText() + " IS NOT NULL", nil
	}
	v, sqlType, err := f.parse(unescape(term))
	switch {
	case err != nil:
		return "", err
	case v == nil && op == "<>": // nothing is equal to an id that is none
		return f.asText() + " IS NOT NULL", nil
	case v == nil:
		return "false", nil
	}
	return fmt.Sprintf("%s %s %s", f.comparand(), op, w.bind(v, sqlType)), nil
}

var numberPattern = regexp.MustCompile(`^-?\d{1,30}(\.\d{1,30})?$`)

// parse reads a term as a value of the field's kind, with the SQL type to bind it
// as. An id that is none is nil.
func (f field) parse(term string) (v any, sqlType string, err error) {
	switch f.kind {
	case records.UUID:
		id, err := uuid.Parse(term)
		switch {
		case err != nil || len(term) != len(uuid.Nil.String()):
			return nil, "", nil
		case f.column != "":
			return id.String(), "uuid", nil
		}
		return id.String(), "text", nil
	case records.Boolean:
		switch b := strings.ToLower(term); b {
		case "true", "false":
			if f.column != "" {
				return b == "true", "boolean", nil
			}
			return b, "text", nil
		}
		return nil, "", badCQL("index %q is compared with %q; allowed are true and false", f.name, term)
	case records.Number:
		if !numberPattern.MatchString(term) {
			return nil, "", badCQL("index %q is compared with %q; a number is expected", f.name, term)
		}
		return term, "numeric", nil
	case records.Time:
		at, err := schemas.ParseTime(term)
		if err != nil {
			return nil, "", badCQL("index %q is compared with %q; the value %v", f.name, term, err)
		}
		return at.UTC(), "timestamptz", nil
	case records.Text:
	}
	return term, "text", nil
}

// text compares a text index.
func (w *cqlWriter) text(f field, relation, term string, foldCase bool) (string, error) {
	fold := func(expr string) string {
		if foldCase {
			return "lower(" + expr + ")"
		}
		return expr
	}
	value := fold(f.asText())
	switch relation {
	case "==", "exact":
		pattern, masked := likePattern(term)
		switch {
		case term == "*":
			return f.asText() + " IS NOT NULL", nil
		case masked:
			return value + " LIKE " + fold(w.bind(pattern, "text")), nil
		}
		return value + " = " + fold(w.bind(unescape(term), "text")), nil
	case "<>":
		if pattern, masked := likePattern(term); masked {
			return value + " NOT LIKE " + fold(w.bind(pattern, "text")), nil
		}
		return value + " <> " + fold(w.bind(unescape(term), "text")), nil
	case "<", "<=", ">", ">=":
		return value + " " + relation + " " + fold(w.bind(unescape(term), "text")), nil
	case "adj":
		return w.words(f, []string{wordTerm(term)}, " AND ", fold)
	case "any":
		return w.words(f, strings.Fields(wordTerm(term)), " OR ", fold)
	case "=", "all", "scr":
		return w.words(f, strings.Fields(wordTerm(term)), " AND ", fold)
	}
	return "", badCQL("relation %q is not supported; allowed are =, ==, <>, <, <=, >, >=, all, any, adj", relation)
}

// words matches words anywhere in the text. Both sides are cut into words by the
// database, so that its collation alone decides what a letter is. "*" stands for
// any letters at an end of a word, and for any characters within one.
func (w *cqlWriter) words(f field, words []string, join string, fold func(string) string) (string, error) {
	if err := w.spend(len(words)); err != nil {
		return "", err
	}
	var parts []string
	for _, word := range words {
		if strings.Trim(word, " -") == "" {
			continue
		}
		parts = append(parts, fmt.Sprintf(`(' ' || regexp_replace(%s, '[^[:alnum:]]+', ' ', 'g') || ' ')`+
			` LIKE ('%% ' || translate(btrim(regexp_replace(%s, '[^[:alnum:]*?]+', ' ', 'g')), '*?', '%%_') || ' %%')`,
			fold(f.asText()), fold(w.bind(word, "text"))))
	}
	if len(parts) == 0 { // no word at all: any record that has the field
		return f.asText() + " IS NOT NULL", nil
	}
	return "(" + strings.Join(parts, join) + ")", nil
}

// wordTerm prepares a term for word matching: what is escaped is meant literally,
// so an escaped mark is punctuation, which separates words.
func wordTerm(term string) string {
	return eachRune(term, func(sb *strings.Builder, r rune, escaped bool) {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), !escaped && (r == '*' || r == '?'):
			sb.WriteRune(r)
		case unicode.IsSpace(r):
			sb.WriteByte(' ')
		default:
			sb.WriteByte('-') // any punctuation: it keeps the parts of a word next to each other
		}
	})
}

// likePattern turns a term into a LIKE pattern and tells whether it has wildcards.
func likePattern(term string) (pattern string, masked bool) {
	pattern = eachRune(term, func(sb *strings.Builder, r rune, escaped bool) {
		switch {
		case r == '*' && !escaped:
			masked = true
			sb.WriteByte('%')
		case r == '?' && !escaped:
			masked = true
			sb.WriteByte('_')
		case r == '%' || r == '_' || r == '\\':
			sb.WriteByte('\\')
			sb.WriteRune(r)
		default:
			sb.WriteRune(r)
		}
	})
	return pattern, masked
}

// unescape drops the backslashes that escape.
func unescape(term string) string {
	return eachRune(term, func(sb *strings.Builder, r rune, _ bool) { sb.WriteRune(r) })
}

// eachRune rewrites a term rune by rune, telling which ones a backslash escaped.
func eachRune(term string, write func(sb *strings.Builder, r rune, escaped bool)) string {
	var sb strings.Builder
	escaped := false
	for _, r := range term {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		write(&sb, r, escaped)
		escaped = false
	}
	return sb.String()
}
