package records

import (
	"fmt"

	"checkoutlock/schemas/fault"
)

// Reference is a field that names records of another type, which cannot be deleted then. A foreign
// key enforces it, also for writes at the same time; a view of links has a trigger instead.
type Reference struct {
	Constraint string // name of the foreign key
	Field      string // JSON path
	To         string // Table of the other type
	// Links is the table or view of links of a field that names several records, or may name
	// missing ones. Empty means that the field's index has a generated column, and what it names
	// exists.
	Links string
}

// newReference returns a Reference from the field of a table to another table.
func newReference(table, field, to string) Reference {
	return Reference{Constraint: table + "_" + snakeCase(field) + "_fkey", Field: field, To: to}
}

// newLinks returns a Reference with links.
func newLinks(table, field, to string) Reference {
	links := table + "_" + snakeCase(field)
	return Reference{Constraint: links + "_fkey", Field: field, To: to, Links: links}
}

// CirculationRules are the referrer of the policies that the rules text names. They are one record
// with a path of its own, so they are not in Types.
var CirculationRules = Type{Name: "circulation rules", Table: "circulation_rules", References: []Reference{
	newRulesLinks("loan", "loan_policy"), newRulesLinks("request", "request_policy"), newRulesLinks("notice", "patron_notice_policy"),
	newRulesLinks("overdue_fine", "overdue_fine_policy"), newRulesLinks("lost_item", "lost_item_fee_policy"),
}}

func newRulesLinks(kind, to string) Reference {
	links := "circulation_rules_" + kind + "_policies"
	return Reference{Constraint: links + "_fkey", Field: "rulesAsText", To: to, Links: links}
}

// FindReference returns the reference that a foreign key enforces, and the type that has it.
func FindReference(constraint string) (Type, Reference, bool) {
	for _, t := range append(Types(), CirculationRules) {
		for _, ref := range t.References {
			if ref.Constraint == constraint {
				return t, ref, true
			}
		}
	}
	return Type{}, Reference{}, false
}

// Dangling returns the fault for writing a record that names the missing record id.
func (ref Reference) Dangling(t Type, id string) error {
	return fault.StorageRefusal(fmt.Sprintf("Cannot set %s.%s = %s because it does not exist in %s.id.", t.Table, ref.Field, id, ref.To),
		fault.Param(ref.Field, id))
}

// StillNamed returns the fault for deleting the record id, which the record by of type t names. An
// empty by is unknown.
func (ref Reference) StillNamed(t Type, by, id string) error {
	message := fmt.Sprintf("Cannot delete %s.id = %s because id is still referenced from table %s.", ref.To, id, t.Table)
	params := []fault.Parameter{fault.Param("id", id)}
	if by != "" {
		message += fmt.Sprintf(" The %s %s names it in %s.", t.Name, by, ref.Field)
		params = append(params, fault.Param(t.Table+".id", by))
	}
	return fault.StorageRefusal(message, params...)
}
