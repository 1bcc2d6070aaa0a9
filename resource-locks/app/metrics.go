package app

import (
	"context"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/web"
)

// observers passes events on. It is complete before the service serves.
type observers struct{ list []engine.Observer }

func (o *observers) add(observer engine.Observer) { o.list = append(o.list, observer) }

// Observe implements engine.Observer.
func (o *observers) Observe(e engine.Event) {
	for _, observer := range o.list {
		observer.Observe(e)
	}
}

// metrics counts events. Its labels are bounded: the front's own word and the kind of
// event, never a name or an owner.
type metrics struct{ events *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer, locks *engine.Locks, log *slog.Logger) *metrics {
	m := &metrics{events: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "resource_locks_events_total", Help: "What happened to locks and claims in this instance, by space of names and kind.",
	}, []string{"space", "event"})}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newGauges(locks, log))
	for _, space := range []string{claimSpace, "locket", "sunbird", "mutex"} { // so that a rate exists before the first event
		for _, kind := range engine.EventKinds() {
			m.events.WithLabelValues(space, string(kind))
		}
	}
	return m
}

// claimSpace is the label of all claims, because clients choose their namespaces.
const claimSpace = "locktopus"

// spaceOf returns the label of an event.
func spaceOf(e engine.Event) string {
	if e.Claim {
		return claimSpace
	}
	return frontOf(e.Namespace)
}

// frontOf returns the front of a flat lock, which is the first part of its namespace.
func frontOf(namespace string) string {
	front, _, _ := strings.Cut(namespace, "/")
	return front
}

// Observe implements engine.Observer.
func (m *metrics) Observe(e engine.Event) {
	m.events.WithLabelValues(spaceOf(e), string(e.Kind)).Inc()
}

// newGauges counts live flat locks by front.
func newGauges(locks *engine.Locks, log *slog.Logger) web.Gauges {
	live := prometheus.NewDesc("resource_locks_held", "Live flat locks in the database, by front.", []string{"space"}, nil)
	return web.Gauges{Descs: []*prometheus.Desc{live}, Log: log, Read: func(ctx context.Context, set web.SetGauge) error {
		counts, err := locks.Count(ctx)
		held := map[string]int{"locket": 0, "sunbird": 0, "mutex": 0} // an absent gauge would raise no alert
		for _, k := range counts {
			held[frontOf(k.Namespace)] += k.Locks
		}
		for front, n := range held {
			set(live, float64(n), front)
		}
		return err
	}}
}
