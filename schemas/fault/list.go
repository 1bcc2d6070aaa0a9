package fault

import "strings"

// List gathers what is wrong with a request, so that one answer names everything.
type List []Detail

// Add notes that the value at key breaks a rule. The message is the key with the
// rule, such as "must be a UUID".
func (l *List) Add(key, rule, value string) {
	*l = append(*l, Detail{
		Message: key + " " + rule, Type: "1", Code: string(Invalid),
		Parameters: []Parameter{Param(key, Shown(value))},
	})
}

// Err returns nil for an empty list, else an Invalid fault with all of it.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return Validation(l...)
}

// Refusal is a Detail in the form of mod-circulation, which sends no type. code may
// be empty.
func Refusal(code, message string, parameters ...Parameter) Detail {
	return Detail{Message: message, Code: code, Parameters: parameters}
}

// Validation returns an Invalid fault that is answered as FOLIO's errors JSON.
func Validation(details ...Detail) *Error {
	messages := make([]string, len(details))
	for i, d := range details {
		messages[i] = d.Message
	}
	return &Error{Code: Invalid, Msg: strings.Join(messages, "; "), Details: details}
}

// StorageRefusal is an Invalid fault with one Detail in the form of FOLIO's storage
// modules: type "1", code "-1".
func StorageRefusal(message string, parameters ...Parameter) *Error {
	return Validation(StorageDetail(message, parameters...))
}

// StorageDetail is the Detail of a StorageRefusal.
func StorageDetail(message string, parameters ...Parameter) Detail {
	return Detail{Message: message, Type: "1", Code: "-1", Parameters: parameters}
}
