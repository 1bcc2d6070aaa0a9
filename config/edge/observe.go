package edge

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas"
	"checkoutlock/schemas/call"
	"checkoutlock/schemas/fault"
)

type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newHTTPMetrics(reg prometheus.Registerer) *httpMetrics {
	m := &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time from request to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
	}
	reg.MustRegister(m.requests, m.duration)
	return m
}

// observe puts the call into the context, and logs and measures the request when
// it is answered. It is outermost, so an error is written before it looks at the
// status.
func (o Options) observe(m *httpMetrics) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			info := readCall(c.Request())
			c.SetRequest(c.Request().WithContext(call.NewContext(c.Request().Context(), info)))
			c.Response().Header().Set(schemas.RequestIDHeader, info.RequestID)

			err := next(c)
			if err != nil {
				c.Error(err)
			}
			took := time.Since(start)
			route, method := routeOf(c), methodOf(c.Request().Method)
			m.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().Status)).Inc()
			m.duration.WithLabelValues(method, route).Observe(took.Seconds())
			o.logRequest(c, route, took, err)
			return nil
		}
	}
}

// routeOf is the path's pattern, so that labels stay few and free of ids.
func routeOf(c echo.Context) string {
	if c.Path() == "" {
		return "unknown"
	}
	return c.Path()
}

func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "other"
}

func (o Options) logRequest(c echo.Context, route string, took time.Duration, err error) {
	status := c.Response().Status
	level := slog.LevelInfo
	switch {
	case status >= http.StatusInternalServerError && fault.CodeOf(err) != fault.LockHeld:
		level = slog.LevelError
	case strings.HasPrefix(route, "/admin/") || route == "/metrics":
		level = slog.LevelDebug
	}
	ctx := c.Request().Context()
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", route),
		slog.Int("status", status), slog.Float64("took_ms", float64(took.Microseconds())/1000),
	}
	if err != nil {
		f := ToFault(err)
		attrs = append(attrs, slog.String("code", string(f.Code)))
		if len(f.Details) == 0 || status >= http.StatusInternalServerError {
			attrs = append(attrs, slog.String("err", err.Error()))
		} // else the answer has told the caller, and its messages may name a patron
	}
	o.Log.LogAttrs(ctx, level, "request", attrs...)
}
