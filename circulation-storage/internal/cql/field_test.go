package cql_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// The casts of Time indexes and of generated columns rely on it.
func TestParse_ValuesThatCannotBeCastAreNotStored(t *testing.T) {
	t.Parallel()
	// What the server writes itself, and what the rules of loans refuse.
	elsewhere := []string{"id", "metadata.", "status.date", "loanDate", "returnDate"}
	for _, typ := range records.Types() {
		for name, index := range typ.Indexes {
			isElsewhere := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
			uncast := index.Of != "" || (index.Kind != records.Time && index.Column == "")
			if uncast || slices.ContainsFunc(elsewhere, isElsewhere) {
				continue
			}
			doc := `"2026-02-30T00:00:00Z"`
			for _, key := range slices.Backward(strings.Split(name, ".")) {
				doc = `{"` + key + `":` + doc + `}`
			}
			if _, err := typ.Parse([]byte(doc), ""); !strings.Contains(refusals(err), name+" must be") {
				t.Errorf("%s %s is not refused: %v", typ.Name, doc, err)
			}
		}
	}
}

// refusals are the messages of all details.
func refusals(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return ""
	}
	messages := make([]string, len(f.Details))
	for i, d := range f.Details {
		messages[i] = d.Message
	}
	return strings.Join(messages, "\n")
}
