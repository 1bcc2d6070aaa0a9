package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// parameters reads those of a query string, and gathers what is wrong with them.
// One that is there but empty is wrong: it would widen what was to be narrowed.
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

// integer is missing when the parameter is absent.
func (p *parameters) integer(name string, missing, least, most int) int {
	if !p.values.Has(name) {
		return missing
	}
	n, err := strconv.Atoi(p.values.Get(name))
	if err != nil || n < least || n > most {
		p.wrong(name, fmt.Sprintf("must be an integer from %d to %d", least, most))
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

// text is "" when the parameter is absent.
func (p *parameters) text(name string, most int) string {
	s := p.values.Get(name)
	switch n := utf8.RuneCountInString(s); {
	case !p.values.Has(name):
	case n < 1 || n > most:
		p.wrong(name, fmt.Sprintf("must have 1 to %d characters", most))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		p.wrong(name, "must be UTF-8 without NUL")
	}
	return s
}

// oneOf is "" when the parameter is absent.
func (p *parameters) oneOf(name string, allowed ...string) string {
	if p.values.Has(name) && !slices.Contains(allowed, p.values.Get(name)) {
		p.wrong(name, "must be one of "+strings.Join(allowed, ", "))
	}
	return p.values.Get(name)
}

// uuid is "" when the parameter is absent.
func (p *parameters) uuid(name string) string {
	if p.values.Has(name) && !schemas.IsUUID(p.values.Get(name)) {
		p.wrong(name, "must be a UUID")
	}
	return strings.ToLower(p.values.Get(name))
}

// time is "" when the parameter is absent. A bare date is refused, since it could
// mean either end of the day.
func (p *parameters) time(name string) string {
	s := p.values.Get(name)
	if !p.values.Has(name) {
		return ""
	}
	if _, err := schemas.ParseTime(s); err != nil || len(s) == len(time.DateOnly) {
		p.wrong(name, "must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z")
	}
	return s
}
