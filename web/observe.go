package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newHTTPMetrics(reg prometheus.Registerer) *httpMetrics {
	register, b := promauto.With(reg), config.ReadBuild()
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "build_info", Help: "The build that runs, in the labels; always 1.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "modified": strconv.FormatBool(b.Modified), "goversion": b.Go,
		},
	}, func() float64 { return 1 })
	return &httpMetrics{
		requests: register.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by route, status and the fault's code.",
		}, []string{"method", "route", "status", "code"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time from request to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
	}
}

// observe puts the call and the time-out into the request's only context, and logs and
// measures the request when it is answered. It is outermost, so an error is written before
// it reads the status. Later checks complete the call.
func (o Options) observe(m *httpMetrics, timeouts map[routeKey]time.Duration) echo.MiddlewareFunc {
	overloads := sparseLines{pause: overloadPause}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			r := c.Request()
			call := readCall(r)
			timeout, own := timeouts[routeKey{r.Method, c.Path()}]
			if own {
				// The server's WriteTimeout is for RequestTimeout. Setting it fails only if the client left.
				_ = http.NewResponseController(c.Response()).SetWriteDeadline(start.Add(timeout + config.FinishMargin))
			} else {
				timeout = o.RequestTimeout
			}
			// The path's pattern, so that labels stay few and free of ids.
			route, method := cmp.Or(c.Path(), unknownRoute), methodOf(r.Method)
			traced, endTrace := o.traces.begin(okapi.Carry(r.Context(), &call), r, route)
			ctx, cancel := context.WithTimeout(traced, timeout)
			defer cancel()
			c.SetRequest(r.WithContext(ctx))
			c.Response().Header().Set(okapi.RequestIDHeader, call.RequestID)

			err := next(c)
			if err != nil {
				c.Error(err)
			}
			took := time.Since(start)
			code := labelCode(c.Response().Header(), err)
			m.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().Status), code).Inc()
			m.duration.WithLabelValues(method, route).Observe(took.Seconds())
			endTrace(c.Response().Status, code)
			o.logRequest(c, route, took, err, &overloads)
			cutOff(c, err)
			return nil
		}
	}
}

// overloadPause is the least time between two lines of OVERLOADED above debug. All lines of a flood
// would delay the work that goes on, which waits for the log too.
const overloadPause = 10 * time.Millisecond

// sparseLines lets through one line in each pause. It takes no lock, because thousands may come at once.
type sparseLines struct {
	pause time.Duration
	last  atomic.Int64
}

func (l *sparseLines) allow(now time.Time) bool {
	last, at := l.last.Load(), now.UnixNano()
	return at-last >= int64(l.pause) && l.last.CompareAndSwap(last, at)
}

type routeKey struct{ method, path string }

// listTimeouts returns the routes with time-outs of their own.
func listTimeouts(routes []Route) map[routeKey]time.Duration {
	timeouts := map[routeKey]time.Duration{}
	for _, r := range routes {
		if r.Timeout > 0 {
			timeouts[routeKey{r.Method, r.Path}] = r.Timeout
		}
	}
	return timeouts
}

// unknownRoute stands for every path that has no route.
const unknownRoute = "unknown"

func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodPatch, http.MethodOptions:
		return method
	}
	return otherLabel
}

// otherLabel stands for every value that is not in a list, so that labels stay few.
const otherLabel = "other"

// labelCode returns the code of an answer: its X-Fault-Code, or the code of the error that
// cut it off. Answers without either have "".
func labelCode(header http.Header, err error) string {
	code := fault.Code(header.Get(fault.Header))
	if code == "" && err != nil {
		code = ToFault(err).Code
	}
	if code == "" || slices.Contains(fault.Codes(), code) {
		return string(code)
	}
	return otherLabel
}

// logRequest writes the request's line. Only an answer of 500 and above has its
// error there: the text of any other was answered, and may quote what the caller
// sent, which may name a patron.
func (o Options) logRequest(c echo.Context, route string, took time.Duration, err error, overloads *sparseLines) {
	ctx, status := c.Request().Context(), c.Response().Status
	var code fault.Code
	if err != nil {
		code = ToFault(err).Code
	}
	level := levelOf(route, status, code)
	if code == fault.Overloaded && !overloads.allow(time.Now()) || code == fault.Unavailable && o.CountRefusal != nil && o.CountRefusal() {
		level = slog.LevelDebug
	}
	if !o.Log.Enabled(ctx, level) {
		return // before the attributes are made, which is most of the work
	}
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", route),
		slog.Int("status", status), slog.Float64("took_ms", schemas.Milliseconds(took)),
		slog.String("address", c.RealIP()), // of the connection, because a client can send any header
	}
	if err != nil {
		attrs = append(attrs, slog.String("code", string(code)))
		if status >= http.StatusInternalServerError {
			attrs = append(attrs, slog.String("err", err.Error()))
		}
	}
	o.Log.LogAttrs(ctx, level, "request", attrs...)
}

// levelOf returns the level of a request's line: debug for the normal work of the pair,
// info for refusals that indicate a caller with a wrong configuration.
func levelOf(route string, status int, code fault.Code) slog.Level {
	switch {
	case strings.HasPrefix(route, "/admin/"), route == "/metrics":
		return slog.LevelDebug
	case route == unknownRoute && status >= http.StatusBadRequest:
		return slog.LevelInfo
	case status < http.StatusBadRequest, status == statusClientLeft, status == http.StatusLocked, isExpected(code):
		return slog.LevelDebug
	case status < http.StatusInternalServerError:
		return slog.LevelInfo
	case code == fault.Overloaded, code == fault.TenantNotReady, code == fault.Unavailable:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// isExpected reports whether an answer with this code is part of the normal work of the
// pair, so that operators need not act.
func isExpected(code fault.Code) bool {
	switch code {
	case fault.NotFound, fault.Invalid, fault.Conflict, fault.InUse,
		fault.LockHeld, fault.LockQueueFull, fault.LockLost, fault.LockNotAcquired,
		fault.SettingsChanged, fault.ItemChanged, fault.RequestChanged, fault.LimitReached, fault.LoanChanged,
		fault.KeyLeaseLost, fault.GivenUp, fault.RequestRunning:
		return true
	default:
		return false
	}
}
