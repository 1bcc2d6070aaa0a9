package jsonschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	fast "github.com/segmentio/encoding/json"

	"checkoutlock/schemas/fault"
)

// Limits of a document, so that PostgreSQL can store whatever passes: a jsonb
// number is stored and answered written out, and takes no more digits than its
// numeric type has.
const (
	MaxDocumentDepth = 100 // objects and arrays inside each other
	MaxNumberDigits  = 300 // of a number when written out without exponent
)

// Decode reads one JSON document as Validate judges it and as records are
// stored: numbers stay json.Number, so that they keep their value; a property
// that is null is absent, at any depth (a null in an array stays, it holds a
// place). What is no JSON is a Malformed fault. What PostgreSQL's jsonb could not
// store, or only changed, is an Invalid one: \u0000, half of a surrogate pair, a
// number of more than MaxNumberDigits digits, more than MaxDocumentDepth levels.
func Decode(doc []byte) (any, error) {
	if err := checkEncoding(doc); err != nil {
		return nil, err
	}
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	if err := checkEscapes(doc); err != nil {
		return nil, err
	}
	if err := checkStorable(v, v, nil); err != nil {
		return nil, err
	}
	return v, nil
}

// maxFastReads is how many bytes the fast library may read for a document. It reads each byte once for each
// level.
const maxFastReads = 1 << 20

// parse reads a document with its numbers as they are. encoding/json reads what may be large and deep, and
// says what is wrong with a document.
func parse(doc []byte) (v any, err error) {
	if levels := bytes.Count(doc, []byte("{")) + bytes.Count(doc, []byte("[")); levels*len(doc) <= maxFastReads {
		if rest, err := fast.Parse(doc, &v, fast.UseNumber); err == nil && len(rest) == 0 {
			return v, nil
		}
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	v = nil
	err = dec.Decode(&v)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fault.New(fault.Malformed, "The body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Malformed, "The body is not valid JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Malformed, "The body has something after its JSON value, at byte %d", dec.InputOffset())
	}
	return v, nil
}

// DecodeObject is Decode for a document that must be an object. Any other is a Malformed fault.
func DecodeObject(doc []byte) (map[string]any, error) {
	v, err := Decode(doc)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fault.New(fault.Malformed, "The body must be a JSON object, not %s", fault.Shown(v))
	}
	return object, nil
}

// CheckTexts refuses the texts that Decode refuses in a document, which is valid JSON. It is for
// documents of which nothing else is stored.
func CheckTexts(doc []byte) error {
	if err := checkEncoding(doc); err != nil {
		return err
	}
	return checkEscapes(doc)
}

func checkEncoding(doc []byte) error {
	if !utf8.Valid(doc) {
		return fault.New(fault.Malformed, "The body is not valid UTF-8")
	}
	return nil
}

// checkEscapes refuses escapes that are valid JSON but no valid text. Go's decoder would
// replace them silently, and PostgreSQL refuses them. doc is valid JSON, so a backslash
// stands only in a string, and a character follows it.
func checkEscapes(doc []byte) error {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		i++
		if doc[i] != 'u' {
			continue
		}
		start := i - 1
		unit := codeUnit(doc[i+1:])
		i += 4
		low := uint64(0)
		if i+2 < len(doc) && doc[i+1] == '\\' && doc[i+2] == 'u' {
			low = codeUnit(doc[i+3:])
		}
		isHigh := unit >= 0xD800 && unit < 0xDC00
		switch {
		case isHigh && low >= 0xDC00 && low < 0xE000:
			i += 6
		case unit == 0, isHigh, unit >= 0xDC00 && unit < 0xE000:
			escape := string(doc[start : start+6])
			return fault.Validation(fault.TypedDetail("characters", fmt.Sprintf("the escape %s at byte %d is no character and cannot be stored", escape, start),
				fault.Param("$", escape)))
		}
	}
	return nil
}

// codeUnit reads the four hexadecimal digits that follow \u.
func codeUnit(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // the document was parsed before
	return n
}

// checkStorable drops what is null below v, which stands at path in doc. It refuses
// nesting that is too deep and numbers that are too long.
func checkStorable(doc, v any, path []string) error {
	switch v.(type) {
	case map[string]any, []any:
		if len(path) >= MaxDocumentDepth {
			return refuseAt(doc, path, "depth", "is nested too deeply: %d levels of objects and arrays are allowed", MaxDocumentDepth)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil {
				delete(v, key)
				continue
			}
			if err := checkStorable(doc, member, append(path, key)); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range v {
			if err := checkStorable(doc, element, append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case json.Number:
		if !fits(v.String()) {
			return refuseAt(doc, path, "number", "is too long a number: %d digits are allowed, written out without exponent", MaxNumberDigits)
		}
	}
	return nil
}

func refuseAt(doc any, path []string, code, format string, args ...any) error {
	key := jsonPath(doc, path)
	return fault.Validation(fault.TypedDetail(code, key+" "+fmt.Sprintf(format, args...), fault.Param(key, fault.Shown(valueAt(doc, path)))))
}

// fits reports whether a JSON number has at most MaxNumberDigits digits when it
// is written out, which never takes more than its own digits and its exponent.
func fits(number string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	digits := len(mantissa) - strings.Count(mantissa, "-") - strings.Count(mantissa, ".")
	if exponent == "" {
		return digits <= MaxNumberDigits
	}
	exp, err := strconv.Atoi(exponent)
	return err == nil && exp >= -MaxNumberDigits && exp <= MaxNumberDigits && digits+max(exp, -exp) <= MaxNumberDigits
}

// UnmarshalExact is json.Unmarshal that reads a property only under its exact name, as
// FOLIO does. encoding/json also reads one that differs by case, and prefers it to an
// exact one that stands before it. Not each overflow of an int is an error, so a schema bounds those.
func UnmarshalExact(body []byte, v any) error {
	rest, err := fast.Parse(body, v, fast.DontMatchCaseInsensitiveStructFields)
	if err != nil || len(rest) > 0 {
		return cmp.Or(json.Unmarshal(body, v), err) // encoding/json says better what is wrong
	}
	return nil
}
