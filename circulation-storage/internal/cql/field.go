package cql

import (
	"fmt"
	"strings"

	"checkoutlock/circulation-storage/internal/records"
)

// field is an index as SQL sees it.
type field struct {
	name  string // JSON path with dots
	index records.Index
}

// asText returns the field's value as text, NULL if the record has none. It is exactly
// the expression that the migrations index.
func (f field) asText() string {
	switch {
	case f.index.Of != "":
		value := field{name: f.name[strings.LastIndexByte(f.name, '.')+1:]}
		return "(SELECT " + value.path("->>") + " FROM {schema}." + f.index.Of + " WHERE id = " + f.index.Column + ")"
	case f.index.Column != "":
		return f.index.Column
	case f.index.ISBN:
		return "regexp_replace(" + f.joinParts() + `, '(?<=[0-9])[- ]+(?=[0-9X])', '', 'gi')`
	case len(f.index.Parts) > 0:
		return f.joinParts()
	}
	return f.path("->>")
}

// joinParts returns the values of all parts, joined by blanks.
func (f field) joinParts() string {
	joined := make([]string, len(f.index.Parts))
	for i, part := range f.index.Parts {
		joined[i] = field{name: part}.path("->>")
		if strings.HasPrefix(part, "$") {
			joined[i] = "jsonb_path_query_array(jsonb, " + quoteLiteral(part) + ")::text"
		}
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

// comparand returns the field's value in the type in which it is compared and sorted.
func (f field) comparand() string {
	if f.index.Column != "" && f.index.Of == "" {
		return f.index.Column
	}
	switch f.index.Kind {
	case records.Number:
		return fmt.Sprintf("(CASE WHEN jsonb_typeof(%s) = 'number' THEN (%s)::numeric END)", f.path("->"), f.asText())
	case records.Time:
		return "{schema}.record_time(" + f.asText() + ")" // NULL for what is no date
	case records.Text, records.UUID:
		return "lower(" + f.asText() + ")"
	case records.Boolean:
	}
	return f.asText()
}
