package policy

import "fmt"

// SyntaxError says what is wrong with a rules text and where. The first fault
// of the text is reported.
type SyntaxError struct {
	Message string // as FOLIO words it
	Line    int    // counted from 1
	// Column is counted from 0 in characters, as ANTLR does. FOLIO's answer
	// carries this number for missing and repeated policies, and one more for
	// everything else.
	Column int
}

// Error returns the message with its line and column, counted as in the fields.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// ErrBlank is Compile's *SyntaxError for a text of nothing but white space.
// The message is FOLIO's for a check-out under blank rules.
var ErrBlank error = &SyntaxError{Message: "Cannot apply blank circulation rules", Line: 1}
