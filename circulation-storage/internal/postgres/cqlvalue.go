package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/jsonschema"
)

// field is an index as SQL sees it.
type field struct {
	name   string // JSON path with dots
	kind   records.Kind
	column string // the column that holds the value, "" when the JSON does
	parts  []string
}

// asText returns the field's value as text, NULL if the record has none. It is exactly
// the expression that the migrations index.
func (f field) asText() string {
	switch {
	case f.column != "":
		return f.column
	case len(f.parts) > 0:
		return f.joinParts()
	}
	return f.path("->>")
}

// joinParts returns the values of all parts, joined by blanks. A part that ends in ".*"
// stands for the values of an object.
func (f field) joinParts() string {
	joined := make([]string, len(f.parts))
	for i, part := range f.parts {
		if object, ok := strings.CutSuffix(part, ".*"); ok {
			joined[i] = "jsonb_path_query_array(jsonb, " + quoteLiteral("$."+object+".*") + ")::text"
			continue
		}
		joined[i] = field{name: part}.path("->>")
	}
	return "concat_ws(' ', " + strings.Join(joined, ", ") + ")"
}

// path returns the path to the field in the JSON, with arrow before its last step.
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

// Dates are stored as jsonschema.ParseTime accepts them. The first pattern keeps a cast
// from failing on anything else. The second matches the dates that name their zone; the
// others mean UTC, in any zone of the session.
const (
	datePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$`
	zonePattern = `T.*(Z|[+-][0-9]{2}:?[0-9]{2})$`
)

// comparand returns the field's value in the type in which it is compared and sorted.
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

// compareValue compares an index that is no text.
func (w *cqlWriter) compareValue(f field, relation, term string) (string, error) {
	op := relation
	switch relation {
	case "<", "<=", ">", ">=", "<>", "=":
	case "==", "exact":
		op = "="
	default:
		return "", badCQL("index %q cannot be compared by %q; allowed are =, ==, <>, <, <=, >, >=", f.name, relation)
	}
	// Clients write > "" for records that have the field.
	if op == "=" && (term == "*" || term == "" && relation == "=") || term == "" && (op == ">" || op == "<>") {
		return f.asText() + " IS NOT NULL", nil
	}
	value := unescape(term)
	if f.kind == records.UUID && relation == "=" {
		value = strings.Trim(value, "'") // FOLIO compares words then, and apostrophes separate words
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
	return fmt.Sprintf("%s %s %s", f.comparand(), op, w.bind(v, sqlType)), nil
}

var numberPattern = regexp.MustCompile(`^-?\d{1,30}(\.\d{1,30})?$`)

// parseTerm reads a term as a value of the field's kind. It returns the SQL type to bind
// it with. An id that is no UUID is nil.
func (f field) parseTerm(term string) (v any, sqlType string, err error) {
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
		b := strings.ToLower(term)
		switch {
		case b != "true" && b != "false":
			return nil, "", badCQL("index %q is compared with %q; allowed are true and false", f.name, term)
		case f.column != "":
			return b == "true", "boolean", nil
		}
		return b, "text", nil
	case records.Number:
		if !numberPattern.MatchString(term) {
			return nil, "", badCQL("index %q is compared with %q; a number is expected", f.name, term)
		}
		return term, "numeric", nil
	case records.Time:
		at, err := jsonschema.ParseTime(term)
		if err != nil {
			return nil, "", badCQL("index %q is compared with %q; the value %v", f.name, term, err)
		}
		return at.UTC(), "timestamptz", nil
	case records.Text:
	}
	return term, "text", nil
}

// compareText compares a text index.
func (w *cqlWriter) compareText(f field, relation, term string, foldCase bool) (string, error) {
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
		return w.matchWords(f, joinGroups(splitWords(term)), " AND ", fold)
	case "any":
		return w.matchWords(f, splitWords(term), " OR ", fold)
	case "=", "all", "scr":
		return w.matchWords(f, splitWords(term), " AND ", fold)
	}
	return "", badCQL("relation %q is not supported; allowed are =, ==, <>, <, <=, >, >=, all, any, adj", relation)
}

// matchWords matches words anywhere in the text. A wildcard stands for letters at an end
// of a word, and for any characters within one.
func (w *cqlWriter) matchWords(f field, words []string, join string, fold func(string) string) (string, error) {
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
		parts[i] = text + " LIKE " + fold(w.bind("% "+pattern+" %", "text"))
	}
	return "(" + strings.Join(parts, join) + ")", nil
}

// separators returns the characters that separate words, as ranges: ASCII's and Latin-1's
// marks and the punctuation of Unicode. It is no character class of PostgreSQL, because
// the database's locale decides about those: in the C locale, ü is no letter.
func separators() [][2]rune {
	return [][2]rune{{0x01, '/'}, {':', '@'}, {'[', '`'}, {'{', 0xBF}, {0x2000, 0x206F}, {0x3000, 0x303F}}
}

func separatorClass() string {
	var sb strings.Builder
	for _, r := range separators() {
		fmt.Fprintf(&sb, `\u%04X-\u%04X`, r[0], r[1])
	}
	return sb.String()
}

// splitWords cuts a term at blanks into groups of words that belong together, and each
// group at the other separators. A wildcard belongs to its word, unless it is escaped.
func splitWords(term string) []string {
	term = rewriteRunes(term, func(sb *strings.Builder, r rune, escaped bool) {
		separates := slices.ContainsFunc(separators(), func(s [2]rune) bool { return s[0] <= r && r <= s[1] })
		switch {
		case !escaped && (r == '*' || r == '?'), !separates:
			sb.WriteRune(r)
		case unicode.IsSpace(r):
			sb.WriteByte(' ')
		default:
			sb.WriteByte('-')
		}
	})
	var groups []string
	for group := range strings.FieldsSeq(term) {
		if parts := strings.FieldsFunc(group, func(r rune) bool { return r == '-' }); len(parts) > 0 {
			groups = append(groups, strings.Join(parts, " "))
		}
	}
	return groups
}

// joinGroups makes one group of all.
func joinGroups(groups []string) []string {
	if len(groups) == 0 {
		return nil
	}
	return []string{strings.Join(groups, " ")}
}

// likePattern turns a term into a LIKE pattern and reports whether it has wildcards.
func likePattern(term string) (pattern string, masked bool) {
	pattern = rewriteRunes(term, func(sb *strings.Builder, r rune, escaped bool) {
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

// unescape removes the backslashes that escape.
func unescape(term string) string {
	return rewriteRunes(term, func(sb *strings.Builder, r rune, _ bool) { sb.WriteRune(r) })
}

// rewriteRunes rewrites a term rune by rune; a backslash escaped the escaped ones.
func rewriteRunes(term string, write func(sb *strings.Builder, r rune, escaped bool)) string {
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
