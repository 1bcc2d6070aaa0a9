package locket

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/web"
)

// metrics are those of the published server, under its names, and two of ours, requests and
// duration. That server sends them to a collector; here they are scraped.
type metrics struct {
	started, succeeded, failed, cancelled *prometheus.CounterVec
	inFlight                              *prometheus.GaugeVec
	expired                               map[string]prometheus.Counter // by kind
	latency                               map[string]*maximum           // by method

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, locks *engine.Locks, log *slog.Logger) *metrics {
	register := promauto.With(reg)
	countCalls := func(name, help string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"request_type"})
	}
	m := &metrics{
		started:   countCalls("RequestsStarted", "Calls of Locket begun."),
		succeeded: countCalls("RequestsSucceeded", "Calls of Locket that ended with OK or with a collision."),
		failed:    countCalls("RequestsFailed", "Calls of Locket that ended with another answer."),
		cancelled: countCalls("RequestsCancelled", "Calls of Locket whose client left before the answer."),
		inFlight: register.NewGaugeVec(prometheus.GaugeOpts{
			Name: "RequestsInFlight", Help: "Calls of Locket under way.",
		}, []string{"request_type"}),
		expired: map[string]prometheus.Counter{
			kindLock:     register.NewCounter(prometheus.CounterOpts{Name: "LocksExpired", Help: "Locks of Locket that expired."}),
			kindPresence: register.NewCounter(prometheus.CounterOpts{Name: "PresenceExpired", Help: "Presences of Locket that expired."}),
		},
		latency: map[string]*maximum{},
		requests: register.NewCounterVec(prometheus.CounterOpts{
			Name: "locket_requests_total", Help: "Calls of Locket answered, by method and code.",
		}, []string{"method", "code"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name: "locket_request_duration_seconds", Help: "Time from a call of Locket to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method"}),
	}
	reg.MustRegister(liveLocks(locks, kindLock, "ActiveLocks", "Live locks of Locket.", log),
		liveLocks(locks, kindPresence, "ActivePresences", "Live presences of Locket.", log))
	for _, method := range []string{"Lock", "Release", "Fetch", "FetchAll"} { // what clients' dashboards show
		longest := &maximum{}
		m.latency[method] = longest
		register.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "RequestLatencyMax", Help: "Nanoseconds of the longest call of Locket since the last scrape.",
			ConstLabels: prometheus.Labels{"request_type": method},
		}, func() float64 { return float64(longest.sinceScrape.Swap(0)) })
		for _, counter := range []*prometheus.CounterVec{m.started, m.succeeded, m.failed, m.cancelled} {
			counter.WithLabelValues(method) // so that dashboards find them before the first call
		}
		m.inFlight.WithLabelValues(method)
	}
	return m
}

func (m *metrics) begin(method string) {
	m.started.WithLabelValues(method).Inc()
	m.inFlight.WithLabelValues(method).Inc()
}

// end counts an answer. gone is why the client's context ended, nil while it waits.
func (m *metrics) end(method string, gone error, code codes.Code, took time.Duration) {
	m.inFlight.WithLabelValues(method).Dec()
	if errors.Is(gone, context.Canceled) {
		m.cancelled.WithLabelValues(method).Inc()
	}
	if code == codes.OK || code == codes.AlreadyExists {
		m.succeeded.WithLabelValues(method).Inc()
	} else {
		m.failed.WithLabelValues(method).Inc()
	}
	m.latency[method].raise(took)
	m.requests.WithLabelValues(method, code.String()).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}

// Observe implements engine.Observer: it counts expired locks of Locket.
func (m *metrics) Observe(e engine.Event) {
	if e.Namespace != Namespace || e.Kind != engine.EventExpired {
		return
	}
	if expired := m.expired[e.LockKind]; expired != nil {
		expired.Inc()
	}
}

// maximum is the longest duration since the last scrape.
type maximum struct{ sinceScrape atomic.Int64 }

func (x *maximum) raise(d time.Duration) {
	for {
		longest := x.sinceScrape.Load()
		if int64(d) <= longest || x.sinceScrape.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// liveLocks is a gauge of the live locks of a kind. All instances see the same number.
func liveLocks(locks *engine.Locks, kind, name, help string, log *slog.Logger) web.Gauges {
	live := prometheus.NewDesc(name, help, nil, nil)
	return web.Gauges{Descs: []*prometheus.Desc{live}, Log: log, Read: func(ctx context.Context, set web.SetGauge) error {
		counts, err := locks.Count(ctx)
		n := 0
		for _, c := range counts {
			if c.Namespace == Namespace && c.Kind == kind {
				n += c.Locks
			}
		}
		set(live, float64(n))
		return err
	}}
}
