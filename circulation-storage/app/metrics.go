package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// metrics counts what the domain packages report. Labels are bounded: they are outcomes or tenants,
// never patrons.
type metrics struct {
	acquires   *prometheus.CounterVec
	wait       *prometheus.HistogramVec
	waiting    prometheus.Gauge
	released   prometheus.Counter
	swept      prometheus.Counter
	commits    *prometheus.CounterVec
	commitTime *prometheus.HistogramVec
	unfenced   prometheus.Counter
	forgotten  prometheus.Counter
	aged       prometheus.Counter
	expired    prometheus.Counter
	tenants    *prometheus.GaugeVec
	overLimit  *prometheus.GaugeVec
	// unknownPlaces counts by tenant, as overLimit does.
	unknownPlaces *prometheus.GaugeVec

	delivered   *prometheus.CounterVec
	notSent     *prometheus.CounterVec
	eventLag    prometheus.Gauge
	undelivered prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	register := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help, label string) *prometheus.GaugeVec {
		return register.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	}
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	seconds := func(name, help, label string, more ...float64) *prometheus.HistogramVec {
		opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: slices.Concat(buckets, more)}
		return register.NewHistogramVec(opts, []string{label})
	}
	m := &metrics{
		acquires:      counters("checkout_lock_acquires_total", "Answered acquires, by outcome.", "outcome"),
		wait:          seconds("checkout_lock_acquire_duration_seconds", "Time from an acquire's arrival to its answer, waiting included.", "outcome", 5, 10),
		waiting:       gauge("checkout_lock_waiting", "Callers that wait for a lock in this process."),
		released:      counter("checkout_lock_releases_total", "Live locks released by their holders."),
		swept:         counter("checkout_lock_swept_total", "Locks deleted long after they were outdated."),
		commits:       counters("checkout_commits_total", "Commits by kind and outcome; the fence refuses with lock_lost.", "kind", "outcome"),
		commitTime:    seconds("checkout_commit_duration_seconds", "Time for one commit, refused ones too.", "kind"),
		unfenced:      counter("loans_unfenced_total", "Open loans written past the fence: through the plain loan endpoints, or recorded by staff."),
		forgotten:     counter("idempotency_keys_swept_total", "Idempotency-Keys of check-outs deleted a day after their use."),
		aged:          counter("checkout_history_swept_total", "Past check-outs deleted because they were older than HISTORY_RETENTION."),
		expired:       counter("requests_expired_total", "Open requests that were closed because they had expired."),
		tenants:       gauges("storage_tenants", "Installed tenants by the state of their schema; only current ones are served.", "state"),
		overLimit:     gauges("checkout_patrons_over_limit", "Patrons with a loan of the last hour beyond a limit that its check-out counted, by tenant; it must be 0.", "tenant"),
		unknownPlaces: gauges("checkout_unknown_service_points", "Machines that sent a service point which does not exist since the last count, by tenant.", "tenant"),
		delivered:     counters("events_delivered_total", "Events that were received, by topic; event is one without a record.", "topic"),
		notSent:       counters("events_failures_total", "Tries to deliver an event that failed, by cause. It is tried again.", "cause"),
		eventLag:      gauge("events_lag_seconds", "Age of the oldest event of the tenants that this process delivers for."),
		undelivered:   counter("events_swept_total", "Events deleted undelivered because they were older than EVENTS_RETENTION."),
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, o := range lock.Outcomes() { // so that a rate exists before the first event
		m.acquires.WithLabelValues(string(o))
	}
	for _, topic := range append(events.Topics(), events.OtherEvents) {
		m.delivered.WithLabelValues(topic)
	}
	for _, why := range events.Failures() {
		m.notSent.WithLabelValues(string(why))
	}
	for _, o := range commit.Outcomes() {
		for _, kind := range commit.Kinds() {
			m.commits.WithLabelValues(string(kind), string(o))
		}
	}
	return m
}

// newGauges reads numbers of all served tenants that list returns.
func newGauges(db *postgres.DB, list func(context.Context) ([]okapi.Tenant, error), log *slog.Logger) web.Gauges {
	held := prometheus.NewDesc("checkout_lock_held", "Live locks in the database, of all tenants.", nil, nil)
	oldest := prometheus.NewDesc("checkout_lock_oldest_seconds", "Age of the oldest live lock of all tenants, 0 without one.", nil, nil)
	waiting := prometheus.NewDesc("events_waiting", "Events that wait in the outboxes of all tenants; 10000 of one tenant mean as many or more.", nil, nil)
	return web.Gauges{Descs: []*prometheus.Desc{held, oldest, waiting}, Log: log, Read: func(ctx context.Context, set web.SetGauge) error {
		ids, err := list(ctx)
		if err != nil {
			return err
		}
		var all postgres.Gauges
		for _, id := range ids {
			one, err := db.ReadGauges(okapi.WithTenant(ctx, id))
			switch {
			case fault.Is(err, fault.Unavailable), ctx.Err() != nil: // it is that of all tenants
				return err
			case err != nil: // its calls and its sweeps say why
				continue
			}
			all.HeldLocks, all.OldestLock, all.Events = all.HeldLocks+one.HeldLocks, max(all.OldestLock, one.OldestLock), all.Events+one.Events
		}
		set(held, float64(all.HeldLocks))
		set(oldest, all.OldestLock.Seconds())
		set(waiting, float64(all.Events))
		return nil
	}}
}

// forgetPurged lists tenants as list does, and deletes the gauge's values of those that are listed no more.
func forgetPurged(gauge *prometheus.GaugeVec, list func(context.Context) ([]okapi.Tenant, error)) func(context.Context) ([]okapi.Tenant, error) {
	var before []okapi.Tenant
	return func(ctx context.Context) ([]okapi.Tenant, error) {
		ids, err := list(ctx)
		if err != nil {
			return nil, err
		}
		for _, id := range before {
			if !slices.Contains(ids, id) {
				gauge.DeleteLabelValues(id.String())
			}
		}
		before = ids
		return ids, nil
	}
}

// countOverLimit sets the gauge of the tenant in ctx.
func (m *metrics) countOverLimit(ctx context.Context, db *postgres.DB) error {
	n, err := db.CountOverLimit(ctx)
	if err == nil {
		m.overLimit.WithLabelValues(okapi.FromContext(ctx).Tenant.String()).Set(float64(n))
	}
	return err
}

// countUnknownPlaces sets the gauge of the tenant in ctx, and logs that machines have sent a service
// point which does not exist since the last count.
func (m *metrics) countUnknownPlaces(ctx context.Context, history *postgres.HistoryStore, interval time.Duration, log *slog.Logger) error {
	n, machine, servicePointID, err := history.CountUnknownPlaces(ctx, interval)
	if err != nil {
		return err
	}
	m.unknownPlaces.WithLabelValues(okapi.FromContext(ctx).Tenant.String()).Set(float64(n))
	if n > 0 {
		log.WarnContext(ctx, "machines send a service point that does not exist", "machines", n, "machine", machine, "service_point_id", servicePointID)
	}
	return nil
}

// Acquired implements lock.Observer.
func (m *metrics) Acquired(o lock.Outcome, took time.Duration) {
	m.acquires.WithLabelValues(string(o)).Inc()
	m.wait.WithLabelValues(string(o)).Observe(took.Seconds())
}

// Waiting implements lock.Observer.
func (m *metrics) Waiting(delta int) { m.waiting.Add(float64(delta)) }

// Released implements lock.Observer.
func (m *metrics) Released() { m.released.Inc() }

// setTenants is for readiness.NewWatch.
func (m *metrics) setTenants(state readiness.State, n int) {
	m.tenants.WithLabelValues(string(state)).Set(float64(n))
}

// Ended implements commit.Observer.
func (m *metrics) Ended(kind commit.Kind, o commit.Outcome, took time.Duration) {
	m.commits.WithLabelValues(string(kind), string(o)).Inc()
	m.commitTime.WithLabelValues(string(kind)).Observe(took.Seconds())
}

// LentUnfenced implements commit.Observer.
func (m *metrics) LentUnfenced() { m.unfenced.Inc() }

// RequestsExpired implements commit.Observer.
func (m *metrics) RequestsExpired(n int) { m.expired.Add(float64(n)) }

// Delivered implements events.Observer.
func (m *metrics) Delivered(kind string, n int) { m.delivered.WithLabelValues(kind).Add(float64(n)) }

// Failed implements events.Observer.
func (m *metrics) Failed(why events.Failure, n int) {
	m.notSent.WithLabelValues(string(why)).Add(float64(n))
}

// Lag implements events.Observer.
func (m *metrics) Lag(age time.Duration) { m.eventLag.Set(age.Seconds()) }

// commitEnds counts commits, and wakes the first waiter for a lock that one released.
type commitEnds struct {
	*metrics
	locks *lock.Service
}

// LockReleased implements commit.Observer.
func (e commitEnds) LockReleased(ctx context.Context, userID uuid.UUID) {
	e.locks.NoteRelease(ctx, userID)
}
