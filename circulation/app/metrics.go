package app

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/circulation/internal/admission"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/reporter"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/web"
)

// metrics counts what the flows report. Labels are bounded: they are outcomes, steps and
// path templates, never patrons or ids.
type metrics struct {
	countCheckOut func(outcome string)
	waiting       prometheus.Gauge
	wait          *prometheus.HistogramVec
	steps         *prometheus.HistogramVec
	repeats       *prometheus.CounterVec
	countKeyed    func(keyed.Outcome)
	countFallback func(reason string)
	dropped       prometheus.Counter
	calls         *prometheus.HistogramVec
	countRefused  func(admission.Result)
	admission     *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	register := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
		return register.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		countCheckOut: countBy(counter("circulation_checkouts_total", "Ended check-outs, by outcome.", "outcome"), checkout.Outcomes()),
		waiting:       register.NewGauge(prometheus.GaugeOpts{Name: "circulation_lock_waiting", Help: "Check-outs that try for a patron's lock now."}),
		wait:          seconds("circulation_lock_wait_seconds", "Time that a check-out tried for the patron's lock, by whether it got the lock.", "got"),
		steps:         seconds("circulation_checkout_step_seconds", "Time from the previous step of a check-out to the named one.", "step"),
		repeats:       counter("circulation_commit_repeats_total", "Repeated commits, by the fault that was the reason.", "reason"),
		countKeyed: countBy(counter("circulation_keyed_checkouts_total",
			"Check-outs with an Idempotency-Key, by whether they worked, were answered like the first one, or neither.", "outcome"), keyed.Outcomes()),
		countFallback: countBy(counter("circulation_settings_fallbacks_total",
			"Reads of lock settings after which others than the configured ones are in force, by reason.", "reason"), settings.Reasons()),
		dropped: register.NewCounter(prometheus.CounterOpts{Name: "circulation_history_dropped_total", Help: "Ended check-outs that could not be reported to the history."}),
		calls:   seconds("circulation_storage_call_seconds", "Calls to storage, by route and status; none is a call without an answer.", "method", "route", "status"),
		countRefused: countBy(counter("circulation_admission_refused_total",
			"Check-outs, dry runs and explanations that were refused because of overload, by reason.", "reason"), admission.Refusals()),
		admission: seconds("circulation_admission_wait_seconds", "Time until a check-out, dry run or explanation was admitted or refused, by which of these.", "result"),
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// countBy returns a function that counts by its argument, one of the labels. It adds all of them at
// 0, so that a rate exists before the first event.
func countBy[L ~string](counts *prometheus.CounterVec, labels []L) func(L) {
	for _, label := range labels {
		counts.WithLabelValues(string(label))
	}
	return func(label L) { counts.WithLabelValues(string(label)).Inc() }
}

// registerAdmission adds the numbers of admitted and waiting check-outs of a line.
func registerAdmission(reg prometheus.Registerer, line *admission.Line) {
	register := promauto.With(reg)
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "circulation_admission_admitted", Help: "Check-outs, dry runs and explanations in work now.",
	}, func() float64 { n, _ := line.Counts(); return float64(n) })
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "circulation_admission_waiting", Help: "Check-outs, dry runs and explanations that wait for their turn now.",
	}, func() float64 { _, n := line.Counts(); return float64(n) })
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "circulation_admission_room", Help: "How many of different patrons may wait now: so many get their turn in time at the rate of the last seconds.",
	}, func() float64 { return float64(line.Room()) })
}

// newFeatureGauge says for each tenant whether the lock is on. Its label is a tenant, of which there
// are hundreds at most.
func newFeatureGauge(store *settings.Store, log *slog.Logger) web.Gauges {
	enabled := prometheus.NewDesc("circulation_checkout_lock_enabled",
		"1 if the check-out lock was on for the tenant when this process read its settings in the last 4 minutes, else 0.", []string{"tenant"}, nil)
	return web.Gauges{Descs: []*prometheus.Desc{enabled}, Log: log, Read: func(_ context.Context, set web.SetGauge) error {
		for tenant, on := range store.ListEnabled() {
			value := 0.0
			if on {
				value = 1
			}
			set(enabled, value, tenant)
		}
		return nil
	}}
}

// observeEntry is for admission.New.
func (m *metrics) observeEntry(result admission.Result, took time.Duration) {
	if result != admission.Admitted {
		m.countRefused(result)
	}
	m.admission.WithLabelValues(string(result)).Observe(took.Seconds())
}

func (m *metrics) Waited(wait time.Duration, got bool) {
	m.wait.WithLabelValues(strconv.FormatBool(got)).Observe(wait.Seconds())
}

func (m *metrics) Repeated(reason string) { m.repeats.WithLabelValues(reason).Inc() }

// observeCall is for storageclient.New.
func (m *metrics) observeCall(method, route string, status int, took time.Duration) {
	label := "none"
	if status != 0 {
		label = strconv.Itoa(status)
	}
	m.calls.WithLabelValues(method, route, label).Observe(took.Seconds())
}

// countDropped is for reporter.NewRecorder.
func (m *metrics) countDropped(n int) { m.dropped.Add(float64(n)) }

// checkOuts observes check-outs for the metrics, then for the history, and then for onStep.
type checkOuts struct {
	*metrics
	history *reporter.Recorder
	onStep  []func(context.Context, Step)
}

func (o checkOuts) Reached(ctx context.Context, step checkout.Step, took time.Duration) {
	o.steps.WithLabelValues(string(step)).Observe(took.Seconds())
	for _, f := range o.onStep {
		f(ctx, step)
	}
}

func (o checkOuts) WaitBegan(ctx context.Context, w checkout.Wait) {
	o.waiting.Inc()
	o.history.WaitBegan(ctx, w)
}

func (o checkOuts) WaitEnded(ctx context.Context, w checkout.Wait) {
	o.waiting.Dec()
	o.history.WaitEnded(ctx, w)
}

func (o checkOuts) Ended(ctx context.Context, e checkout.Ending) {
	o.countCheckOut(e.Outcome)
	o.history.Ended(ctx, e)
}
