package records

import (
	"cmp"
	"fmt"
	"strings"

	"checkoutlock/schemas/fault"
)

// Violation returns the fault for writing a record that would store a value twice. It is nil for a
// constraint that t does not list.
func (t Type) Violation(constraint string, r Record) error {
	for _, u := range t.Unique {
		if u.Constraint == constraint {
			return t.newDuplicate(u, r)
		}
	}
	if constraint == t.Table+"_pkey" {
		return t.newDuplicate(Unique{Fields: []string{"id"}}, r)
	}
	return nil
}

// newDuplicate has the type and code of FOLIO's RMB ("1" and "-1"), and its message in
// clearer words.
func (t Type) newDuplicate(u Unique, r Record) error {
	var params []fault.Parameter
	var values []string
	for _, field := range u.Fields {
		v := r.value(field)
		if v == nil {
			continue
		}
		values = append(values, fault.Shown(v))
		params = append(params, fault.Param(field, fault.Shown(v)))
	}
	message := cmp.Or(u.Message,
		fmt.Sprintf("%s value already exists in table %s: %s", strings.Join(u.Fields, ", "), t.Table, strings.Join(values, ", ")))
	switch {
	case u.Code != "":
		return fault.New(u.Code, "%s", message)
	case u.DetailCode != "":
		return fault.Validation(fault.Refusal(u.DetailCode, message, params...))
	}
	return fault.StorageRefusal(message, params...)
}
