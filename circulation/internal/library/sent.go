package library

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Sent is the body of a request as it was sent. It serves to name a property that was misspelt. It
// may be empty.
type Sent string

// KeepSent implements web.SentKeeper.
func (s *Sent) KeepSent(body json.RawMessage) { *s = Sent(body) }

// maxEdits is how many characters a misspelt name may differ in, apart from case and punctuation. The
// names of a request's own properties differ in more.
const maxEdits = 2

// NewMissing returns the detail of a request without the property key. If the body has a property
// with a name like it, the message and the parameter sentAs name that.
func (s Sent) NewMissing(code, key, message string) fault.Detail {
	d := fault.Refusal(code, message, fault.Parameter{Key: key})
	if similar := s.findSimilar(key); similar != "" {
		similar = fault.Shown(similar)
		d.Message += ". It was sent as " + similar + ", but names of properties are compared exactly"
		d.Parameters = append(d.Parameters, fault.Param("sentAs", similar))
	}
	return d
}

// IsMisspelt reports whether the body has a property with a name like key.
func (s Sent) IsMisspelt(key string) bool { return s.findSimilar(key) != "" }

// NewBarcodeMissing is NewMissing for a barcode.
func (s Sent) NewBarcodeMissing(key string) fault.Detail {
	return s.NewMissing(CodeMissing, key, key+" is required: a barcode as text")
}

// findSimilar returns the most similar name of a property, "" for none.
func (s Sent) findSimilar(key string) string {
	var properties map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &properties) != nil {
		return ""
	}
	best, edits := "", maxEdits+1
	for name := range properties {
		if n := schemas.CountEdits(foldName(name), foldName(key)); name != key && (n < edits || n == edits && n <= maxEdits && name < best) {
			best, edits = name, n
		}
	}
	return best
}

// maxName is the length of the longest name that is compared.
const maxName = 50

// foldName returns the letters and digits of a name without case.
func foldName(name string) []rune {
	if len(name) > maxName {
		return nil
	}
	return slices.DeleteFunc([]rune(strings.ToLower(name)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
