package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Parameters reads those of a query string and gathers what is wrong with them, so
// that one answer names everything. A parameter that is there but empty is wrong:
// it would widen what was to be narrowed. Reading a parameter declares it.
type Parameters struct {
	values   url.Values
	tolerant bool
	declared []string
	wrong    fault.List
}

// QueryOf returns the parameters of a request to an endpoint of our own. For Err,
// those that are not declared are wrong, and so are those that are there twice.
func QueryOf(c echo.Context) *Parameters { return &Parameters{values: c.QueryParams()} }

// FolioQueryOf returns the parameters of a request to an endpoint of FOLIO's, which
// ignores what it does not know.
func FolioQueryOf(c echo.Context) *Parameters {
	return &Parameters{values: c.QueryParams(), tolerant: true}
}

// NoParameters is the handler of an endpoint of our own that knows no parameters.
func NoParameters(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := QueryOf(c).Err(); err != nil {
			return err
		}
		return next(c)
	}
}

// Declare notes that the endpoint knows these parameters.
func (p *Parameters) Declare(names ...string) {
	for _, name := range names {
		if !slices.Contains(p.declared, name) {
			p.declared = append(p.declared, name)
		}
		if n := len(p.values[name]); n > 1 && !p.tolerant {
			p.Wrong(name, fmt.Sprintf("must be given once, not %d times", n))
		}
	}
}

// has declares a parameter. It is false when the parameter is absent.
func (p *Parameters) has(name string) bool {
	p.Declare(name)
	return p.values.Has(name)
}

// Wrong notes that a parameter breaks a rule, which goes on from its name. Only the
// first rule that it breaks is told.
func (p *Parameters) Wrong(name, rule string) {
	if slices.ContainsFunc(p.wrong, func(d fault.Detail) bool { return d.Parameters[0].Key == name }) {
		return
	}
	p.wrong.Add(name, rule, p.values.Get(name))
}

// Err is one Invalid fault with everything, nil when nothing is wrong. It comes
// after all parameters are declared.
func (p *Parameters) Err() error {
	return slices.Concat(p.wrong, p.unknown()).Err()
}

// maxUnknown bounds an answer: a query string has room for thousands of names.
const maxUnknown = 10

// unknown names the parameters that are not declared, in alphabetical order.
func (p *Parameters) unknown() fault.List {
	if p.tolerant {
		return nil
	}
	rule := "is unknown; no parameters are allowed"
	if len(p.declared) > 0 {
		rule = "is unknown; allowed are " + strings.Join(p.declared, ", ")
	}
	var found fault.List
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if len(found) < maxUnknown && !slices.Contains(p.declared, name) {
			found.Add(fault.Shown(name), rule, p.values.Get(name))
		}
	}
	return found
}

// Text is "" when the parameter is absent. It has at most most characters.
func (p *Parameters) Text(name string, most int) string {
	if !p.has(name) {
		return ""
	}
	s := p.values.Get(name)
	switch n := utf8.RuneCountInString(s); {
	case n < 1 || n > most:
		p.Wrong(name, fmt.Sprintf("must have 1 to %d characters", most))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		p.Wrong(name, "must be UTF-8 without NUL")
	}
	return s
}

// Integer is missing when the parameter is absent.
func (p *Parameters) Integer(name string, missing, least, most int) int {
	if !p.has(name) {
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
	if !p.has(name) {
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
	if !p.has(name) {
		return time.Time{}
	}
	t, err := jsonschema.ParseTime(p.values.Get(name))
	if err != nil || len(p.values.Get(name)) == len(time.DateOnly) {
		p.Wrong(name, "must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z")
		return time.Time{}
	}
	return t
}
