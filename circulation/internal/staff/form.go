package staff

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/web"
)

// field is a field of a form, for the template "field". Its name is also its id in the
// page.
type field struct {
	Name, Label, Hint string // a hint may have several lines
	Type              string // of an input; empty is text
	Rows              int    // makes it a textarea
	Required          bool
	Value             string // as it was typed, also when it is wrong
	Wrong             string // what is wrong with it, in words; empty for nothing
}

// findProblems returns the fields that are wrong, for the template "problems".
func findProblems(fields ...field) []field {
	var wrong []field
	for _, f := range fields {
		if f.Wrong != "" {
			wrong = append(wrong, f)
		}
	}
	return wrong
}

func readBarcode(q *web.Values, name, label string) field {
	f := field{Name: name, Label: label, Value: strings.TrimSpace(q.Text(name))}
	switch n := utf8.RuneCountInString(f.Value); {
	case n > schemas.MaxHistoryText:
		f.Wrong = fmt.Sprintf("The barcode has %d characters; at most %d are possible.", n, schemas.MaxHistoryText)
	case !utf8.ValidString(f.Value) || strings.ContainsRune(f.Value, 0):
		f.Wrong = "The barcode has characters that no barcode can have."
	}
	return f
}

// reasonField is the field for the reason of a change.
type reasonField struct {
	Value, Wrong string
}

// check reports whether the reason can be used, and sets Wrong if not.
func (r *reasonField) check() bool {
	switch why, err := schemas.ParseChangeReason(r.Value); {
	case err != nil:
		r.Wrong = "The reason " + err.Error() + "."
	case why == "":
		r.Wrong = "Say why, in a few words: the history shows it to your colleagues."
	}
	return r.Wrong == ""
}
