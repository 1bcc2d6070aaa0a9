package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"checkoutlock/schemas"
)

// maxValue is the longest value of a field, in characters.
const maxValue = 255

// Result is how a message was answered, for metrics, the log, and repeats.
type Result string

// The results. A repeat gets a kept answer only after OK and Refused.
const (
	OK      Result = "ok"
	Refused Result = "refused" // for a reason that stays for a while
	Busy    Result = "busy"    // a lock or a conflict: trying again helps
	Failed  Result = "failed"  // something is not available
	Unknown Result = "unknown" // a change may have been made
)

// Results returns every result, in the order of declaration.
func Results() []Result { return []Result{OK, Refused, Busy, Failed, Unknown} }

// Answer is a message to a machine.
type Answer struct {
	Code   string
	Fixed  string
	Fields []Field
	Result Result
	Reason string // a code for the log, "" for none
	// Note is what staff should look at, nil for nothing: its kind, its barcodes, and the loan.
	Note *schemas.TerminalNote
	// Repeated means that the same request was answered before, and this is that answer.
	Repeated bool
	// RightPIN says whether the request has the patron's PIN; nil unless that was compared.
	RightPIN *bool
}

// NewAnswer returns an answer with the fixed parts one after the other. Its result is OK.
func NewAnswer(code string, fixed ...string) Answer {
	return Answer{Code: code, Fixed: strings.Join(fixed, ""), Result: OK}
}

// Add adds a field, also if its value is empty.
func (a *Answer) Add(id, value string) { a.Fields = append(a.Fields, Field{id, value}) }

// AddFilled adds a field unless its value is empty.
func (a *Answer) AddFilled(id, value string) {
	if value != "" {
		a.Add(id, value)
	}
}

// Say adds texts for the screen, each as one AF. Empty texts are left out.
func (a *Answer) Say(texts ...string) {
	for _, text := range texts {
		a.AddFilled("AF", text)
	}
}

// Print adds the texts for the screen once more for the printer, in lines of at most width characters.
// Without a width they are as long as can be.
func (a *Answer) Print(width int) {
	if width < 1 || width > maxValue {
		width = maxValue
	}
	a.Fields = slices.Clip(a.Fields) // others may hold the answer
	for _, f := range a.Fields {
		if f.ID != "AF" {
			continue
		}
		for _, line := range f.cut(width) {
			a.Add("AG", line)
		}
	}
}

// Encode writes the answer to r without the end of the line. It has the sequence number and
// the checksum if r came with them; 96 has no sequence number.
func (a Answer) Encode(r Request, set CharacterSet) []byte {
	line := append([]byte(a.Code), set.encode(a.Fixed)...)
	for _, f := range a.Fields {
		for _, value := range f.cut(maxValue) {
			line = append(line, f.ID...)
			line = append(line, set.encode(value)...)
			line = append(line, '|')
		}
	}
	if !r.Checked {
		return line
	}
	if r.Sequence != "" && a.Code != ResendRequest {
		line = append(line, "AY"+r.Sequence...)
	}
	line = append(line, "AZ"...)
	return append(line, checksumOf(line)...)
}

// AskAgain returns the line 96, with a checksum if checked.
func AskAgain(checked bool) []byte {
	return NewAnswer(ResendRequest).Encode(Request{Checked: checked}, CP850)
}

// cut returns the value in pieces of at most longest characters. Texts for screen and printer may go
// over several fields; other values lose their end.
func (f Field) cut(longest int) []string {
	rest := []rune(norm.NFC.String(strings.Map(blankControls, f.Value)))
	var pieces []string
	for len(rest) > longest {
		end := longest
		if f.ID != "AF" && f.ID != "AG" {
			return []string{string(rest[:end])}
		}
		if blank := strings.LastIndexByte(string(rest[:end]), ' '); blank > 0 {
			end = len([]rune(string(rest[:end])[:blank])) + 1
		}
		pieces = append(pieces, strings.TrimRight(string(rest[:end]), " "))
		rest = rest[end:]
	}
	return append(pieces, string(rest))
}

func blankControls(r rune) rune {
	if r == '|' || unicode.IsControl(r) {
		return ' '
	}
	return r
}

// YN returns Y or N.
func YN(yes bool) string {
	if yes {
		return "Y"
	}
	return "N"
}

// Count writes n with zeros before it. A larger number is cut to nines; a negative one means
// that this is not counted, and is blank.
func Count(n, width int) string {
	digits := fmt.Sprintf("%0*d", width, n)
	switch {
	case n < 0:
		return strings.Repeat(" ", width)
	case len(digits) > width:
		return strings.Repeat("9", width)
	}
	return digits
}
