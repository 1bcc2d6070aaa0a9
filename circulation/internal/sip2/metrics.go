package sip2

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
)

// metrics count what machines do. Labels are codes of messages and results, never terminals.
type metrics struct {
	connections prometheus.Gauge
	opened      *prometheus.CounterVec
	messages    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	logins      *prometheus.CounterVec
	repeats     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, handlers map[string]func(context.Context, library.Terminal, wire.Request) wire.Answer) *metrics {
	register := promauto.With(reg)
	m := &metrics{
		connections: register.NewGauge(prometheus.GaugeOpts{Name: "circulation_sip2_connections", Help: "Connections of self-check machines."}),
		opened: register.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_sip2_connections_total", Help: "Connections of self-check machines, by whether they were accepted or one too many.",
		}, []string{"result"}),
		messages: register.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_sip2_messages_total", Help: "Messages of self-check machines, by code and result.",
		}, []string{"message", "result"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name: "circulation_sip2_message_seconds", Help: "Time from a message of a self-check machine to its answer, by code.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"message"}),
		logins: register.NewCounterVec(prometheus.CounterOpts{
			Name: "circulation_sip2_logins_total", Help: "Logins of self-check machines, by result; failed means that storage did not answer.",
		}, []string{"result"}),
		repeats: register.NewCounter(prometheus.CounterOpts{
			Name: "circulation_sip2_repeats_total", Help: "Messages that a machine sent again, and that were answered like the first one.",
		}),
	}
	for _, result := range []string{"accepted", "too_many"} {
		m.opened.WithLabelValues(result)
	}
	for _, result := range []string{"ok", "wrong", "failed"} {
		m.logins.WithLabelValues(result)
	}
	for code := range handlers {
		for _, result := range wire.Results() {
			m.messages.WithLabelValues(code, string(result))
		}
	}
	return m
}

func (m *metrics) countConnection(accepted bool) {
	if !accepted {
		m.opened.WithLabelValues("too_many").Inc()
		return
	}
	m.opened.WithLabelValues("accepted").Inc()
	m.connections.Inc()
}

func (m *metrics) countMalformed(reason string) {
	result := "malformed"
	if reason == wire.WrongChecksum {
		result = "checksum"
	}
	m.messages.WithLabelValues("none", result).Inc()
}

func (m *metrics) observe(code, result string, took time.Duration) {
	m.messages.WithLabelValues(code, result).Inc()
	m.duration.WithLabelValues(code).Observe(took.Seconds())
}
