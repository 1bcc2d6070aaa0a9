package fault

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"checkoutlock/schemas/convert"
)

// List gathers what is wrong with a request, so that one answer names everything.
type List []Detail

// Add notes that the value at key breaks a rule. The message is the key with the
// rule, such as "must be a UUID".
func (l *List) Add(key, rule, value string) {
	*l = append(*l, TypedDetail(string(Invalid), key+" "+rule, Param(key, Shown(value))))
}

// Err returns nil for an empty list, else an Invalid fault with all of it.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return Validation(l...)
}

// Text returns the messages, joined by semicolons.
func (l List) Text() string {
	return strings.Join(convert.All(l, func(d Detail) string { return d.Message }), "; ")
}

// Refusal is a Detail in the form of mod-circulation, which sends no type. An empty code
// becomes that of Invalid, so that no answer lacks one.
func Refusal(code, message string, parameters ...Parameter) Detail {
	return Detail{Message: message, Code: cmp.Or(code, string(Invalid)), Parameters: parameters}
}

// Validation returns an Invalid fault that is answered as FOLIO's errors JSON.
func Validation(details ...Detail) *Error {
	return &Error{Code: Invalid, Msg: List(details).Text(), Details: details}
}

// StorageRefusal is an Invalid fault with one Detail in the form of FOLIO's storage
// modules: type "1", code "-1".
func StorageRefusal(message string, parameters ...Parameter) *Error {
	return Validation(StorageDetail(message, parameters...))
}

// StorageDetail is the Detail of a StorageRefusal.
func StorageDetail(message string, parameters ...Parameter) Detail {
	return TypedDetail("-1", message, parameters...)
}

// TypedDetail is a Detail of type "1", which FOLIO's storage modules and their schemas send.
func TypedDetail(code, message string, parameters ...Parameter) Detail {
	return Detail{Message: message, Type: "1", Code: code, Parameters: parameters}
}

const shownLength = 100 // characters of an offending value that an error repeats

// Shown returns a value as an error repeats it: a string unquoted, everything else as
// JSON. It replaces bytes that are no UTF-8 and keeps at most 100 characters.
func Shown(v any) string {
	if s, ok := v.(string); ok {
		return shorten(s)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return shorten(string(raw))
}

func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD") // also what came in a URL goes out as text
	if runes := []rune(s); len(runes) > shownLength {
		return string(runes[:shownLength]) + "…"
	}
	return s
}
