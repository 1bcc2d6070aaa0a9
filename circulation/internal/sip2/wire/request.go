package wire

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Request is a message of a machine.
type Request struct {
	Code     string
	Sequence string // the digit of AY, "" without
	Checked  bool   // it came with a checksum, so the answer gets one

	fixed  map[Fixed]string
	fields []Field
	body   string
	spoken string
}

// Field is a field with an id of two letters.
type Field struct{ ID, Value string }

// Reasons of a MalformedError.
const (
	WrongChecksum = "wrong checksum"
	wrongTrailer  = "malformed sequence number or checksum"
)

// MalformedError is a line that is no request. It is answered with 96.
type MalformedError struct {
	Checked bool   // the line has a checksum
	Reason  string // for the log: it repeats nothing of the line
}

func (m *MalformedError) Error() string { return "malformed message: " + m.Reason }

// Parse reads a line without its end. Any error is a *MalformedError. A Resend is read whatever its
// checksum is.
func Parse(line []byte, set CharacterSet, detection Detection) (Request, error) {
	if len(line) < codeWidth {
		return Request{}, &MalformedError{Reason: "no code"}
	}
	code := string(line[:codeWidth])
	if code == Login {
		set = CP850 // also of a machine that is signed in, as the first login comes before its set is known
	}
	layout, known := layouts[code]
	fields := codeWidth + widthOf(layout)
	first := fields
	if code == MachineStatus {
		first = codeWidth // machines send it with a fixed part of any width
	}
	rest, t := cutTrailer(line, first, fields)
	r := Request{Code: code, Sequence: t.sequence, Checked: t.checked && detection != IgnoreErrors, body: string(rest)}
	reason := "unknown code"
	if known {
		reason = judge(line, t, code, detection)
	}
	if reason == "" {
		reason = r.read(rest[codeWidth:], layout, set, detection)
	}
	if reason != "" {
		return Request{}, &MalformedError{Checked: r.Checked || reason == wrongTrailer, Reason: reason}
	}
	return r, nil
}

func widthOf(layout []part) int {
	width := 0
	for _, p := range layout {
		width += p.width
	}
	return width
}

// judge returns why a line is refused before it is read, "" if it is not.
func judge(line []byte, t trailer, code string, detection Detection) string {
	switch {
	case bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "control character"
	case code == Resend || detection == IgnoreErrors:
		return ""
	case t.checked && !t.right:
		return WrongChecksum
	case detection == RequireErrors && !t.checked:
		return "no checksum"
	default:
		return ""
	}
}

// read takes the fixed part and the fields apart. It returns why that fails, or "".
func (r *Request) read(rest []byte, layout []part, set CharacterSet, detection Detection) string {
	fixed, fields := rest, []byte(nil)
	width := widthOf(layout)
	if len(rest) > width {
		fixed, fields = rest[:width], rest[width:]
	}
	if end := bytes.IndexByte(fixed, '|'); end >= 0 {
		fixed, fields = rest[:end], rest[end:]
	}
	if len(fixed) < width && r.Code != MachineStatus {
		return "fixed part too short"
	}
	r.fixed = make(map[Fixed]string, len(layout))
	for _, p := range layout {
		n := min(p.width, len(fixed))
		r.fixed[p.field] = set.decode(fixed[:n])
		fixed = fixed[n:]
	}
	for field := range bytes.SplitSeq(fields, []byte("|")) {
		if len(field) < idWidth {
			continue
		}
		f := Field{ID: string(field[:idWidth]), Value: set.decode(field[idWidth:])}
		if r.Code != Resend && detection != IgnoreErrors && (f.ID == "AY" || f.ID == "AZ") {
			return wrongTrailer
		}
		if strings.ContainsFunc(f.Value, unicode.IsControl) {
			return "control character"
		}
		r.fields = append(r.fields, f)
	}
	return ""
}

// Fixed returns a fixed field as it was sent, with its blanks; "" if the message has none of that
// name.
func (r Request) Fixed(f Fixed) string { return r.fixed[f] }

// Flag reports whether a fixed field is Y or y.
func (r Request) Flag(f Fixed) bool { return isYes(r.fixed[f]) }

// Time reads a date. A date without a zone is in local. It returns false for no date.
func (r Request) Time(f Fixed, local *time.Location) (time.Time, bool) {
	return parseDate(r.fixed[f], local)
}

const unknownLanguage = "000"

// Language returns the three digits of the language, 000 (unknown) if there are none.
func (r Request) Language() string {
	language := r.fixed[Language]
	if len(language) != 3 || strings.Trim(language, "0123456789") != "" {
		return unknownLanguage
	}
	return language
}

// In returns the request of a patron whose language an earlier message named.
func (r Request) In(language string) Request {
	r.spoken = language
	return r
}

// Spoken returns the language for texts: the request's own, else that of In.
func (r Request) Spoken() string {
	if own := r.Language(); own != unknownLanguage || r.spoken == "" {
		return own
	}
	return r.spoken
}

// Field returns the first field with the id, "" if it is absent or blank. Values have no blanks at
// their ends, but passwords (AC, AD, CO) keep them.
func (r Request) Field(id string) string {
	for _, f := range r.fields {
		if f.ID == id {
			return f.trimmed()
		}
	}
	return ""
}

func (f Field) trimmed() string {
	value := strings.Trim(f.Value, " ")
	if value != "" && (f.ID == "AC" || f.ID == "AD" || f.ID == "CO") {
		return f.Value
	}
	return value
}

// Yes reports whether a field is Y or y.
func (r Request) Yes(id string) bool { return isYes(r.Field(id)) }

// Number reads a number with blanks or zeros before it. It returns false for none, for a
// negative one, and for one of more than nine digits.
func (r Request) Number(id string) (int, bool) {
	text := r.Field(id)
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Institution returns configured, or what the request names if that is empty.
func (r Request) Institution(configured string) string {
	if configured != "" {
		return configured
	}
	return r.Field("AO")
}

// Body returns the bytes of the message without AY and AZ, which a repeat has too. It may have
// passwords: hash it, and never log it.
func (r Request) Body() string { return r.body }

func isYes(value string) bool { return value == "Y" || value == "y" }
