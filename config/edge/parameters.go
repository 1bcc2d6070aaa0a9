package edge

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Parameters reads those of a query string and gathers what is wrong with them, so
// that one answer names everything. A parameter that is there but empty is wrong:
// it would widen what was to be narrowed.
type Parameters struct {
	values url.Values
	wrong  []fault.Detail
}

// QueryOf returns the parameters of a request.
func QueryOf(c echo.Context) *Parameters { return &Parameters{values: c.QueryParams()} }

// Wrong notes that a parameter breaks a rule, which goes on from its name. Only the
// first rule that it breaks is told.
func (p *Parameters) Wrong(name, rule string) {
	if slices.ContainsFunc(p.wrong, func(d fault.Detail) bool { return d.Parameters[0].Key == name }) {
		return
	}
	p.wrong = append(p.wrong, fault.Detail{
		Message: name + " " + rule, Type: "1", Code: string(fault.Invalid),
		Parameters: []fault.Parameter{fault.Param(name, schemas.Shown(p.values.Get(name)))},
	})
}

// Err is one Invalid fault with everything, nil when nothing is wrong.
func (p *Parameters) Err() error {
	if len(p.wrong) == 0 {
		return nil
	}
	return fault.Validation(p.wrong...)
}

// Text is "" when the parameter is absent. It has at most most characters.
func (p *Parameters) Text(name string, most int) string {
	s := p.values.Get(name)
	switch n := utf8.RuneCountInString(s); {
	case !p.values.Has(name):
		return ""
	case n < 1 || n > most:
		p.Wrong(name, fmt.Sprintf("must have 1 to %d characters", most))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		p.Wrong(name, "must be UTF-8 without NUL")
	}
	return s
}

// Integer is missing when the parameter is absent.
func (p *Parameters) Integer(name string, missing, least, most int) int {
	if !p.values.Has(name) {
		return missing
	}
	n, err := strconv.Atoi(p.values.Get(name))
	if err != nil || n < least || n > most {
		p.Wrong(name, fmt.Sprintf("must be an integer from %d to %d", least, most))
	}
	return n
}

// Boolean is nil when the parameter is absent.
func (p *Parameters) Boolean(name string) *bool {
	if !p.values.Has(name) {
		return nil
	}
	value := p.values.Get(name) == "true"
	if !value && p.values.Get(name) != "false" {
		p.Wrong(name, "must be true or false")
	}
	return &value
}

// Time is zero when the parameter is absent. A bare date is refused, since it could
// mean either end of the day.
func (p *Parameters) Time(name string) time.Time {
	if !p.values.Has(name) {
		return time.Time{}
	}
	t, err := schemas.ParseTime(p.values.Get(name))
	if err != nil || len(p.values.Get(name)) == len(time.DateOnly) {
		p.Wrong(name, "must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z")
		return time.Time{}
	}
	return t
}
