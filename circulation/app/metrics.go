package app

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"checkoutlock/circulation/internal/admission"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/settings"
)

// metrics counts what the flows report. Labels are bounded: they are outcomes,
// steps and path templates, never tenants, patrons or ids.
type metrics struct {
	checkOuts *prometheus.CounterVec
	waiting   prometheus.Gauge
	wait      *prometheus.HistogramVec
	steps     *prometheus.HistogramVec
	again     *prometheus.CounterVec
	requests  *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	dropped   prometheus.Counter
	calls     *prometheus.HistogramVec
	refused   *prometheus.CounterVec
}

var _ checkout.Observer = (*metrics)(nil)

func newMetrics(reg prometheus.Registerer) *metrics {
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	m := &metrics{
		checkOuts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_checkouts_total", Help: "Check-outs ended, by outcome.",
		}, []string{"outcome"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "circulation_lock_waiting", Help: "Check-outs that try for a patron's lock now.",
		}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "circulation_lock_wait_seconds", Help: "Time from a check-out's first try for the patron's lock to its end, by whether it got it.", Buckets: buckets,
		}, []string{"got"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "circulation_checkout_step_seconds", Help: "Time from one step of a check-out to the named one.", Buckets: buckets,
		}, []string{"step"}),
		again: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_commit_repeats_total", Help: "Commits sent again, by the fault that was the reason.",
		}, []string{"reason"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_keyed_checkouts_total", Help: "Check-outs with an Idempotency-Key, by whether they worked, were answered like the first one, or neither.",
		}, []string{"outcome"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_settings_fallbacks_total", Help: "Readings of a tenant's lock settings after which others are in force than those configured, by reason.",
		}, []string{"reason"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "circulation_history_dropped_total", Help: "Ended check-outs that are missing in the history, as it could not be told of them.",
		}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "circulation_storage_call_seconds", Help: "Calls to storage, by route and status; none is a call without an answer.", Buckets: buckets,
		}, []string{"method", "route", "status"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_admission_refused_total", Help: "Check-outs, dry runs and explanations that were refused because of overload, by reason.",
		}, []string{"reason"}),
	}
	reg.MustRegister(m.checkOuts, m.waiting, m.wait, m.steps, m.again, m.requests, m.fallbacks, m.dropped, m.calls, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, outcome := range checkout.Outcomes() { // so that a rate exists before the first event
		m.checkOuts.WithLabelValues(outcome)
	}
	for _, reason := range settings.Reasons() {
		m.fallbacks.WithLabelValues(reason)
	}
	for _, outcome := range keyed.Outcomes() {
		m.requests.WithLabelValues(string(outcome))
	}
	return m
}

// admission has the metrics show how many check-outs a line admitted and lets wait.
func (m *metrics) admission(reg prometheus.Registerer, line *admission.Line) {
	admitted := func() float64 { n, _ := line.Counts(); return float64(n) }
	waiting := func() float64 { _, n := line.Counts(); return float64(n) }
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "circulation_admission_admitted", Help: "Check-outs, dry runs and explanations that are worked on now.",
		}, admitted),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "circulation_admission_waiting", Help: "Check-outs, dry runs and explanations that wait for their turn now.",
		}, waiting),
	)
	for _, why := range admission.Reasons() {
		m.refused.WithLabelValues(string(why))
	}
}

// notAdmitted is what admission.New reports to.
func (m *metrics) notAdmitted(why admission.Reason) { m.refused.WithLabelValues(string(why)).Inc() }

// Reached implements checkout.Observer.
func (m *metrics) Reached(_ context.Context, step checkout.Step, took time.Duration) {
	m.steps.WithLabelValues(string(step)).Observe(took.Seconds())
}

// Waiting implements checkout.Observer.
func (m *metrics) Waiting(_ context.Context, delta int) { m.waiting.Add(float64(delta)) }

// Waited implements checkout.Observer.
func (m *metrics) Waited(wait time.Duration, got bool) {
	m.wait.WithLabelValues(strconv.FormatBool(got)).Observe(wait.Seconds())
}

// Ended implements checkout.Observer.
func (m *metrics) Ended(_ context.Context, e checkout.Ending) {
	m.checkOuts.WithLabelValues(e.Outcome).Inc()
}

// Repeated implements checkout.Observer.
func (m *metrics) Repeated(reason string) { m.again.WithLabelValues(reason).Inc() }

// keyed is what keyed.Requests reports to.
func (m *metrics) keyed(o keyed.Outcome) { m.requests.WithLabelValues(string(o)).Inc() }

// settingsFallback is what settings.NewStore reports to.
func (m *metrics) settingsFallback(reason string) { m.fallbacks.WithLabelValues(reason).Inc() }

// storageCall is what storageclient.New reports to.
func (m *metrics) storageCall(method, route string, status int, took time.Duration) {
	label := "none"
	if status != 0 {
		label = strconv.Itoa(status)
	}
	m.calls.WithLabelValues(method, route, label).Observe(took.Seconds())
}

// historyDropped is what history.NewRecorder reports to.
func (m *metrics) historyDropped(n int) { m.dropped.Add(float64(n)) }

// observers tells several observers, in order.
type observers []checkout.Observer

// Reached implements checkout.Observer.
func (o observers) Reached(ctx context.Context, step checkout.Step, took time.Duration) {
	for _, each := range o {
		each.Reached(ctx, step, took)
	}
}

// Waiting implements checkout.Observer.
func (o observers) Waiting(ctx context.Context, delta int) {
	for _, each := range o {
		each.Waiting(ctx, delta)
	}
}

// Waited implements checkout.Observer.
func (o observers) Waited(wait time.Duration, got bool) {
	for _, each := range o {
		each.Waited(wait, got)
	}
}

// Ended implements checkout.Observer.
func (o observers) Ended(ctx context.Context, e checkout.Ending) {
	for _, each := range o {
		each.Ended(ctx, e)
	}
}

// Repeated implements checkout.Observer.
func (o observers) Repeated(reason string) {
	for _, each := range o {
		each.Repeated(reason)
	}
}
