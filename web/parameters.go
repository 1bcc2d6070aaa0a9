package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// checkQuery refuses a query string that is badly escaped. net/url drops such
// parameters, so a filtered list would become the whole list.
func checkQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if sent := c.Request().URL.RawQuery; sent != "" {
			if _, err := url.ParseQuery(sent); err != nil {
				return fault.Wrap(err, fault.Malformed, "The query string cannot be read: %v", err)
			}
		}
		return next(c)
	}
}

// Query declares the parameters of a route's query string. By default FOLIO's
// leniency holds: parameters that are unknown are ignored, and the first of several
// with one name counts. An Invalid fault names everything that is wrong. A parameter
// that is there but empty is wrong: it would widen what was to be narrowed.
type Query struct {
	Parameters []Parameter
	// Strict refuses parameters that are unknown or repeated, as our own endpoints do.
	Strict bool
	// Check adds what is wrong between several parameters. It may be nil.
	Check func(*Values)
	// Refuse returns the error for the first parameter that breaks its rule, for
	// endpoints that answer another way than an Invalid fault; nil accepts the value as
	// absent. It may be nil.
	Refuse func(p Parameter, value string) error
}

// Strict declares the parameters of an endpoint of our own.
func Strict(parameters ...Parameter) Query { return Query{Parameters: parameters, Strict: true} }

// ParameterType is what a parameter's text stands for.
type ParameterType int

// The types of parameters.
const (
	Text ParameterType = iota
	Integer
	Boolean
	// Time is a date with a time. A bare date is refused, since it could mean either end
	// of the day.
	Time
	UUID
)

// Parameter declares one parameter.
type Parameter struct {
	Name     string
	Meaning  string // a phrase, for documents
	Type     ParameterType
	Required bool
	Default  int                              // of an Integer that is absent
	Least    int                              // of an Integer
	Most     int                              // of an Integer, or the characters of a Text; a Text with 0 has no bounds
	Allowed  []string                         // all values of a Text; nil for any
	Check    func(value string) (rule string) // a further rule of a Text; "" when it is kept
}

// Offset declares how many entries a list skips.
func Offset(most int) Parameter {
	return Parameter{Name: "offset", Meaning: "entries to skip", Type: Integer, Most: most}
}

// Limit declares how many entries a list has at most.
func Limit(missing, least, most int) Parameter {
	return Parameter{Name: "limit", Meaning: "most entries in the answer", Type: Integer, Default: missing, Least: least, Most: most}
}

// FolioPage declares the part of a list as FOLIO's modules do: a query in CQL, offset
// and limit, and more.
func FolioPage(more ...Parameter) Query {
	return Query{
		Parameters: append([]Parameter{
			{Name: "query", Meaning: "CQL that entries must match"}, Offset(math.MaxInt32), Limit(folioLimit, 0, math.MaxInt32),
		}, more...),
		Refuse: RefuseAsFolio,
	}
}

const folioLimit = 10 // RMB's default

// RefuseAsFolio is a Query's Refuse. It returns a Malformed fault with a text as FOLIO
// writes it. An empty text counts as absent.
func RefuseAsFolio(p Parameter, value string) error {
	switch {
	case p.Type == Integer:
		return fault.New(fault.Malformed, "Parameter %s is %q, allowed are integers from %d to %d", p.Name, value, p.Least, p.Most)
	case p.Type == UUID:
		return fault.New(fault.Malformed, "Parameter %s must be a UUID, but it is %.100q", p.Name, value)
	case value != "":
		return fault.New(fault.Malformed, "Parameter %s is %q, allowed are %s", p.Name, value, strings.Join(p.Allowed, ", "))
	}
	return nil
}

// Rule returns the rule that value breaks, "" for none.
func (p Parameter) Rule(value string) string {
	switch p.Type {
	case Integer:
		if n, err := strconv.Atoi(value); err != nil || n < p.Least || n > p.Most {
			return fmt.Sprintf("must be an integer from %d to %d", p.Least, p.Most)
		}
	case Boolean:
		if value != "true" && value != "false" {
			return "must be true or false"
		}
	case Time:
		if _, err := jsonschema.ParseTime(value); err != nil || len(value) == len(time.DateOnly) {
			return "must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z"
		}
	case UUID:
		if !schemas.IsUUID(value) {
			return "must be a UUID"
		}
	case Text:
		return p.textRule(value)
	}
	return ""
}

func (p Parameter) textRule(value string) string {
	n := utf8.RuneCountInString(value)
	switch {
	case p.Most > 0 && (n < 1 || n > p.Most):
		return fmt.Sprintf("must have 1 to %d characters", p.Most)
	case p.Most > 0 && (!utf8.ValidString(value) || strings.ContainsRune(value, 0)):
		return "must be UTF-8 without NUL"
	case len(p.Allowed) > 0 && !slices.Contains(p.Allowed, value):
		return "must be " + strings.Join(p.Allowed, " or ")
	case p.Check != nil:
		return p.Check(value)
	}
	return ""
}

// Values are the parameters of a request, as its route declares them.
type Values struct {
	query  *Query
	values url.Values
	wrong  fault.List
}

// withValues is the context that handlers of routes with parameters get.
type withValues struct {
	echo.Context
	values Values
}

// QueryOf returns the parameters of a request whose route declares some.
func QueryOf(c echo.Context) *Values {
	return &c.(*withValues).values //nolint:forcetypeassert // a route without parameters must not ask
}

// read lets only those requests through whose parameters are right.
func (q Query) read(next echo.HandlerFunc) echo.HandlerFunc {
	if len(q.Parameters) == 0 && !q.Strict {
		return next
	}
	return func(c echo.Context) error {
		with := &withValues{c, Values{query: &q, values: c.QueryParams()}}
		if err := with.values.check(); err != nil {
			return err
		}
		return next(with)
	}
}

func (v *Values) check() error {
	for _, p := range v.query.Parameters {
		if n := len(v.values[p.Name]); n > 1 && v.query.Strict {
			v.Wrong(p.Name, fmt.Sprintf("must be given once, not %d times", n))
		}
		if rule := v.brokenRule(p); rule != "" && v.query.Refuse == nil {
			v.Wrong(p.Name, rule)
		}
	}
	if v.query.Check != nil {
		v.query.Check(v)
	}
	if err := slices.Concat(v.wrong, v.unknown()).Err(); err != nil || v.query.Refuse == nil {
		return err
	}
	for _, p := range v.query.Parameters {
		if v.brokenRule(p) == "" {
			continue
		}
		if err := v.query.Refuse(p, v.values.Get(p.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (v *Values) brokenRule(p Parameter) string {
	switch {
	case v.values.Has(p.Name):
		return p.Rule(v.values.Get(p.Name))
	case p.Required:
		if rule := p.Rule(""); rule != "" {
			return "is required and " + rule
		}
		return "is required"
	}
	return ""
}

// Wrong notes that a parameter breaks a rule, which goes on from its name. Only the
// first rule that it breaks counts.
func (v *Values) Wrong(name, rule string) {
	if !slices.ContainsFunc(v.wrong, func(d fault.Detail) bool { return d.Parameters[0].Key == name }) {
		v.wrong.Add(name, rule, v.values.Get(name))
	}
}

// Err returns an Invalid fault with what Wrong noted, nil for nothing.
func (v *Values) Err() error { return v.wrong.Err() }

// maxUnknown bounds an answer: a query string has room for thousands of names.
const maxUnknown = 10

// unknown names the parameters that are not declared, in alphabetical order.
func (v *Values) unknown() fault.List {
	if !v.query.Strict {
		return nil
	}
	var names []string
	for name := range v.values {
		if !slices.ContainsFunc(v.query.Parameters, func(p Parameter) bool { return p.Name == name }) {
			names = append(names, name)
		}
	}
	var found fault.List
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxUnknown)] {
		found.Add(fault.Shown(name), "is unknown; "+v.query.describeAllowed(), v.values.Get(name))
	}
	return found
}

func (q *Query) describeAllowed() string {
	if len(q.Parameters) == 0 {
		return "no parameters are allowed"
	}
	return "allowed are " + strings.Join(convert.All(q.Parameters, func(p Parameter) string { return p.Name }), ", ")
}

// Text returns "" for an absent parameter.
func (v *Values) Text(name string) string { return v.values.Get(v.declared(name).Name) }

// Count returns how often a parameter is there.
func (v *Values) Count(name string) int { return len(v.values[v.declared(name).Name]) }

// Integer returns the declared default for an absent parameter.
func (v *Values) Integer(name string) int {
	p := v.declared(name)
	if text := v.values.Get(name); text != "" {
		n, _ := strconv.Atoi(text) // checked
		return n
	}
	return p.Default
}

// Boolean returns nil for an absent parameter.
func (v *Values) Boolean(name string) *bool {
	text := v.Text(name)
	if text == "" {
		return nil
	}
	return new(text == "true")
}

// Time returns zero for an absent parameter.
func (v *Values) Time(name string) time.Time {
	t, _ := jsonschema.ParseTime(v.Text(name)) // checked
	return t
}

// UUID returns Nil for an absent parameter.
func (v *Values) UUID(name string) uuid.UUID {
	id, _ := uuid.Parse(v.Text(name)) // checked
	return id
}

// declared returns the declaration of a parameter. A handler that reads another one
// is a bug.
func (v *Values) declared(name string) Parameter {
	for _, p := range v.query.Parameters {
		if p.Name == name {
			return p
		}
	}
	panic("the route does not declare the parameter " + name)
}
