package httpapi

import (
	"net/url"
	"strconv"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// parameters reads those of a query string, and gathers what cannot be read. Which
// values are allowed says whoever uses them.
type parameters struct {
	values  url.Values
	details []fault.Detail
}

// wrong notes that a parameter breaks a rule, which goes on from its name.
func (p *parameters) wrong(name, rule string) {
	p.details = append(p.details, fault.Detail{
		Message: name + " " + rule, Code: string(fault.Invalid),
		Parameters: []fault.Parameter{fault.Param(name, schemas.Shown(p.values.Get(name)))},
	})
}

// err is one Invalid fault with everything, nil when nothing is wrong.
func (p *parameters) err() error {
	if len(p.details) == 0 {
		return nil
	}
	return fault.Validation(p.details...)
}

// text is "" when the parameter is absent. One that is there but empty is wrong: it
// would widen what was to be narrowed.
func (p *parameters) text(name string) string {
	s := p.values.Get(name)
	if s == "" && p.values.Has(name) {
		p.wrong(name, "must not be empty")
	}
	return s
}

// integer is missing when the parameter is absent.
func (p *parameters) integer(name string, missing int) int {
	if !p.values.Has(name) {
		return missing
	}
	n, err := strconv.Atoi(p.values.Get(name))
	if err != nil {
		p.wrong(name, "must be an integer")
	}
	return n
}

// boolean is nil when the parameter is absent.
func (p *parameters) boolean(name string) *bool {
	if !p.values.Has(name) {
		return nil
	}
	value := p.values.Get(name) == "true"
	if !value && p.values.Get(name) != "false" {
		p.wrong(name, "must be true or false")
	}
	return &value
}
