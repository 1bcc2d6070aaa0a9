package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// Route is one endpoint: a service's routes stand in one table, which describes them
// for programs too.
type Route struct {
	Method string
	Path   string
	// Permission is the name that a gateway asks for; empty for platform
	// endpoints.
	Permission string
	// Interface is FOLIO's interface that the route belongs to, with its version, such as
	// "circulation 14.7". It is empty for a route that FOLIO does not have.
	Interface string
	// Desired are the permissions that the handler looks at itself, so that a gateway passes them on.
	Desired []string
	// Every is how often a gateway calls the route; 0 for one that clients call.
	Every time.Duration
	// Query declares the parameters of the query string.
	Query Query
	// Headers declares the headers that the handler reads itself.
	Headers []Parameter
	// Body is what the request's body must be: a Schema, or a value of the Go type that
	// it is read into; nil for none.
	Body     any
	Endpoint Endpoint
	// Refusals are the codes of faults that the route answers, beside those that follow from its other
	// fields.
	Refusals []fault.Code
	// Guards run before the parameters and the body are read, the first one outermost.
	Guards []echo.MiddlewareFunc
	// Timeout bounds the work for a request instead of the service's RequestTimeout; 0 leaves that.
	Timeout time.Duration
	// NoTenant is for platform endpoints, which serve no tenant's records.
	NoTenant bool
	// Uncompressed is for answers that stream, and for pages that show a secret
	// beside what a caller sent: the size of the compressed page would give the
	// secret away (the attack BREACH).
	Uncompressed bool
}

// WithGuard returns the routes with a guard around each.
func WithGuard(routes []Route, guard func(Route) echo.MiddlewareFunc) []Route {
	return convert.All(routes, func(r Route) Route {
		r.Guards = slices.Insert(slices.Clone(r.Guards), 0, guard(r))
		return r
	})
}

// WithInterface returns the routes as parts of FOLIO's interface, except those that have one.
func WithInterface(name string, routes []Route) []Route {
	return convert.All(routes, func(r Route) Route {
		r.Interface = cmp.Or(r.Interface, name)
		return r
	})
}

// WithRefusals returns the routes, which answer these codes too.
func WithRefusals(routes []Route, codes ...fault.Code) []Route {
	return convert.All(routes, func(r Route) Route {
		r.Refusals = slices.Concat(r.Refusals, codes)
		return r
	})
}

// Codes returns the codes of all faults that the route answers.
func (r Route) Codes() []fault.Code {
	codes := append(slices.Clone(r.Refusals), fault.Malformed, fault.Internal)
	if !r.NoTenant {
		codes = append(codes, fault.UnknownTenant, fault.TenantNotReady)
	}
	if !r.NoTenant || r.Interface != "" { // it works with records
		codes = append(codes, fault.Timeout, fault.Unavailable)
		if r.Method != http.MethodGet {
			codes = append(codes, fault.InUse)
		}
	}
	if strings.Contains(r.Path, "/:") {
		codes = append(codes, fault.NotFound)
	}
	if r.Body != nil {
		codes = append(codes, fault.TooLarge, fault.Invalid)
	}
	if len(r.Query.Parameters) > 0 && r.Query.Refuse == nil || r.Query.Strict {
		codes = append(codes, fault.Invalid)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Endpoint is what a route does, and what it answers unless it fails.
type Endpoint struct {
	Answers []Answer
	handle  echo.HandlerFunc
}

// Schema is the name of a JSON Schema (jsonschema.Names).
type Schema string

// Collection is a list of records under its key, with their number. An empty Of is any object.
type Collection struct {
	Key string
	Of  Schema
}

// Media is the type of a body that is no JSON.
type Media string

// Answer is a status and what its body is: a Schema, a Collection, a Media, or a value of the Go type
// that is written as JSON; nil for none.
type Answer struct {
	Status int
	Body   any
	// Headers are the answer's own; those that it always has are Required.
	Headers []Parameter
}

// Location says where the record is that was made.
var Location = Parameter{Name: echo.HeaderLocation, Meaning: "where the record is", Required: true}

// JSON answers with what h returns.
func JSON[T any](status int, h func(echo.Context) (T, error)) Endpoint {
	var body T
	return Endpoint{[]Answer{{Status: status, Body: body}}, func(c echo.Context) error {
		v, err := h(c)
		if err != nil {
			return err
		}
		return c.JSON(status, v)
	}}
}

// Of returns e for a JSON body that keeps to a schema.
func (e Endpoint) Of(schema Schema) Endpoint {
	e.Answers[0].Body = schema
	return e
}

// With returns e for an answer with headers.
func (e Endpoint) With(headers ...Parameter) Endpoint {
	e.Answers[0].Headers = headers
	return e
}

// Empty answers without a body.
func Empty(status int, h echo.HandlerFunc) Endpoint {
	return Endpoint{[]Answer{{Status: status}}, func(c echo.Context) error {
		if err := h(c); err != nil {
			return err
		}
		return c.NoContent(status)
	}}
}

// Handle answers by itself, with one of the answers.
func Handle(h echo.HandlerFunc, answers ...Answer) Endpoint { return Endpoint{answers, h} }

// addRoutes adds the routes, each GET also as HEAD. net/http drops the body of an
// answer to HEAD. Only GET is compressed: other answers are small.
func addRoutes(e *echo.Echo, routes []Route) {
	compress := newCompression()
	for _, r := range routes {
		h := r.Query.read(r.Endpoint.handle)
		for _, guard := range slices.Backward(r.Guards) {
			h = guard(h)
		}
		if !r.NoTenant {
			h = requireTenant(h)
		}
		if r.Method == http.MethodGet {
			if !r.Uncompressed {
				h = compress(h)
			}
			e.Add(http.MethodHead, r.Path, h)
		}
		e.Add(r.Method, r.Path, h)
	}
}
