package records

import (
	"fmt"
	"strings"

	"checkoutlock/schemas/fault"
)

// Violation is the fault for a record that violates the constraint of that name
// when it is written: a value that another record has, or a reference to a record
// that does not exist. It is nil for a constraint that t does not know.
func (t Type) Violation(constraint string, r Record) error {
	for _, u := range t.Unique {
		if u.Constraint == constraint {
			return t.taken(u, r)
		}
	}
	for _, ref := range t.References {
		if ref.Constraint == constraint {
			return t.dangling(ref, r)
		}
	}
	if constraint == t.Table+"_pkey" {
		return t.taken(Unique{Fields: []string{"id"}}, r)
	}
	return nil
}

// taken has RMB's type and code ("1" and "-1") and its message in clearer words.
func (t Type) taken(u Unique, r Record) error {
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
	message := u.Message
	if message == "" {
		message = fmt.Sprintf("%s value already exists in table %s: %s", strings.Join(u.Fields, ", "), t.Table, strings.Join(values, ", "))
	}
	if u.Code != "" {
		return fault.New(u.Code, "%s", message)
	}
	return fault.StorageRefusal(message, params...)
}

func (t Type) dangling(ref Reference, r Record) error {
	value := r.Text(ref.Field)
	return fault.StorageRefusal(fmt.Sprintf("Cannot set %s.%s = %s because it does not exist in %s.id.", t.Table, ref.Field, value, ref.To),
		fault.Param(ref.Field, value))
}

// StillReferenced is the fault for deleting the record of type t with that id
// while a record of another type names it: constraint is the foreign key that
// said so. It is nil for a constraint that no type knows.
func (t Type) StillReferenced(constraint, id string) error {
	for _, other := range Types() {
		for _, ref := range other.References {
			if ref.Constraint == constraint {
				return fault.New(fault.Malformed, "Cannot delete %s.id = %s because id is still referenced from table %s.", t.Table, id, other.Table)
			}
		}
	}
	return nil
}
