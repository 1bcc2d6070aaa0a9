package web

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
)

// countTimeout bounds the database work for one scrape.
const countTimeout = 2 * time.Second

// LiveLocks is a prometheus.Collector that counts the live locks in the database when it is
// scraped. It sends no value during an outage.
type LiveLocks struct {
	Desc *prometheus.Desc
	// Count returns the numbers by their label, "" for a metric without one.
	Count func(context.Context) (map[string]int, error)
	Log   *slog.Logger
}

// Describe implements prometheus.Collector.
func (l LiveLocks) Describe(ch chan<- *prometheus.Desc) { ch <- l.Desc }

// Collect implements prometheus.Collector.
func (l LiveLocks) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	counts, err := l.tryCount(ctx)
	if errors.As(err, new(*fault.PanicError)) {
		l.Log.ErrorContext(ctx, "the live locks are not counted", "err", err)
	}
	if err != nil {
		return
	}
	for label, n := range counts {
		var labels []string
		if label != "" {
			labels = []string{label}
		}
		ch <- prometheus.MustNewConstMetric(l.Desc, prometheus.GaugeValue, float64(n), labels...)
	}
}

// tryCount counts. A collector has a goroutine of its own, so a panic is an error.
func (l LiveLocks) tryCount(ctx context.Context) (counts map[string]int, err error) {
	defer fault.Recover(&err)
	return l.Count(ctx)
}
