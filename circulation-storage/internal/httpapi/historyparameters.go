package httpapi

import (
	"fmt"
	"net/url"
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

func (p *parameters) wrong(name, rule string) {
	p.details = append(p.details, invalid(name, rule, schemas.Shown(p.values.Get(name))))
}

// err is one Invalid fault with everything, nil when nothing is wrong.
func (p *parameters) err() error {
	if len(p.details) == 0 {
		return nil
	}
	return fault.Validation(p.details...)
}

// text is "" when the parameter is absent.
func (p *parameters) text(name string, most int) string {
	s := p.values.Get(name)
	switch n := utf8.RuneCountInString(s); {
	case !p.values.Has(name):
		return ""
	case n < 1 || n > most:
		p.wrong(name, fmt.Sprintf("must have 1 to %d characters", most))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		p.wrong(name, "must be UTF-8 without NUL")
	}
	return s
}

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

// time is zero when the parameter is absent. A bare date is refused, since it could
// mean either end of the day.
func (p *parameters) time(name string) time.Time {
	if !p.values.Has(name) {
		return time.Time{}
	}
	t, err := schemas.ParseTime(p.values.Get(name))
	if err != nil || len(p.values.Get(name)) == len(time.DateOnly) {
		p.wrong(name, "must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z")
		return time.Time{}
	}
	return t
}
