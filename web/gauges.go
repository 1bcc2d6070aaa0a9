package web

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
)

// readTimeout bounds Read for one scrape.
const readTimeout = 2 * time.Second

// Gauges is a prometheus.Collector that reads numbers when it is scraped, such as those of the
// database. It sends none if Read fails.
type Gauges struct {
	Descs []*prometheus.Desc
	// Read calls set for each number.
	Read func(ctx context.Context, set SetGauge) error
	Log  *slog.Logger
}

// SetGauge sets the number of a Desc with these labels.
type SetGauge func(d *prometheus.Desc, value float64, labels ...string)

// Describe implements prometheus.Collector.
func (g Gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range g.Descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g Gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var read []prometheus.Metric
	err := g.tryRead(ctx, func(d *prometheus.Desc, value float64, labels ...string) {
		read = append(read, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	})
	if panicked, ok := errors.AsType[*fault.PanicError](err); ok {
		g.Log.ErrorContext(ctx, "the gauges are not read", panicked.LogAttrs()...)
	}
	if err != nil {
		return
	}
	for _, m := range read {
		ch <- m
	}
}

// tryRead reads. A collector has a goroutine of its own, so a panic is an error.
func (g Gauges) tryRead(ctx context.Context, set SetGauge) (err error) {
	defer fault.Recover(&err)
	return g.Read(ctx, set)
}
