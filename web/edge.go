// Package web is the HTTP server that the services share: routes with declared
// parameters, limits, the headers of a call, one log line and one measurement per
// request. It alone chooses the status of an error.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"checkoutlock/schemas/fault"
)

// Options configure New. All fields are required, except WriteFault and CountRefusal.
type Options struct {
	Log      *slog.Logger
	Registry *prometheus.Registry
	// RequestTimeout bounds the work for one request.
	RequestTimeout time.Duration
	// BodyLimit is the largest body in bytes.
	BodyLimit int64
	// JSONFaults answers 4xx as FOLIO's errors JSON also where a fault has no
	// details, as mod-circulation does; otherwise those are text.
	JSONFaults bool
	// WriteFault answers a fault in the words of another protocol than FOLIO's.
	WriteFault func(c echo.Context, status int, f *fault.Error) error
	// BelievePermissions says that a gateway in front sends X-Okapi-Permissions.
	// Otherwise the header is dropped, because any client can send it.
	BelievePermissions bool
	// CountRefusal counts an answer UNAVAILABLE, and reports whether the log has its cause already. Then
	// the answer's own line is debug. Without it none is.
	CountRefusal func() bool
	// Ready returns why the service cannot work; nil means ready.
	Ready func(context.Context) error

	traces *traces // the Service opens them
}

// New returns the service's handler: its routes, and beside them /admin/health
// (alive), /admin/health/ready, /admin/log-level and /metrics.
func New(o Options, routes []Route) http.Handler {
	e := echo.New()
	e.IPExtractor = echo.ExtractIPDirect()
	// By default Echo believes X-Forwarded-Proto of private addresses alone. A proxy may have a public one.
	e.SchemeExtractor = echo.LegacySchemeExtractor()
	e.HTTPErrorHandler = o.writeError
	e.JSONSerializer = jsonSerializer{}
	chain := func(c echo.Context) error { return c.Handler()(c) } // the route, or Echo's 404 and 405
	for _, m := range slices.Backward([]echo.MiddlewareFunc{
		o.observe(newHTTPMetrics(o.Registry), listTimeouts(routes)),
		middleware.RecoverWithConfig(middleware.RecoverConfig{
			DisableErrorHandler: true, // the panic goes on as an error, to writeError
			LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
				o.Log.ErrorContext(c.Request().Context(), "panic", "err", err, "stack", string(stack))
				if c.Response().Committed {
					return &cutOffError{err}
				}
				return err
			},
		}),
		o.checkHeaders,
		checkQuery,
		o.limitBody,
		describeRouting,
	}) {
		chain = m(chain)
	}
	e.Use(func(echo.HandlerFunc) echo.HandlerFunc { return chain }) // Echo composes for each request
	addRoutes(e, append(routes, PlatformRoutes(o)...))
	return e
}

// PlatformRoutes returns the routes that all services have. Without options they serve documents only.
func PlatformRoutes(o Options) []Route {
	text := Media(echo.MIMETextPlain)
	metrics := promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{}) // it compresses by itself
	return append([]Route{
		{Method: http.MethodGet, Path: "/admin/health", Endpoint: JSON(http.StatusOK, alive), NoTenant: true, Uncompressed: true},
		{
			Method: http.MethodGet, Path: "/admin/health/ready", NoTenant: true, Uncompressed: true,
			Endpoint: Handle((&readiness{Options: o}).answer, Answer{Status: http.StatusOK, Body: text}, Answer{Status: http.StatusServiceUnavailable, Body: text}),
		},
		{Method: http.MethodGet, Path: "/metrics", Endpoint: Handle(echo.WrapHandler(metrics), Answer{Status: http.StatusOK, Body: text}), NoTenant: true, Uncompressed: true},
	}, logLevelRoutes(o)...)
}

// alive answers as FOLIO's RMB modules do: the JSON string "OK".
func alive(echo.Context) (string, error) { return "OK", nil }

// limitBody refuses a body above the limit: at once when its length is
// announced, otherwise while it is read (see ReadBody).
func (o Options) limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength > o.BodyLimit {
			return tooLarge(o.BodyLimit)
		}
		if r.ContentLength < 0 { // not announced
			r.Body = http.MaxBytesReader(c.Response(), r.Body, o.BodyLimit)
		}
		return next(c)
	}
}

func tooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "The body is too large: at most %d bytes are allowed", limit)
}
