package web

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

// workerPause is how long after its panic a worker runs again. It is shorter than a lease,
// which a worker keeps.
const workerPause = time.Second

// Worker is a loop of the service.
type Worker struct {
	// Name names it in the log and in metrics, where it is a label.
	Name string
	// Run returns soon after its context is done. After a panic it is called again, so it
	// must leave no mutex locked.
	Run func(ctx context.Context)
}

// Panics logs and counts panics of what runs beside requests. It is safe for concurrent use.
type Panics struct {
	log   *slog.Logger
	count *prometheus.CounterVec
}

// NewPanics registers the counter of panics. Call it once for each registry.
func NewPanics(registry prometheus.Registerer, log *slog.Logger) *Panics {
	return &Panics{log: log, count: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "worker_panics_total", Help: "Panics of what runs beside requests, by its name. It goes on.",
	}, []string{"worker"})}
}

// Expect lets the count of a worker begin at 0, so that a rate exists before the first panic.
func (p *Panics) Expect(worker string) { p.count.WithLabelValues(worker) }

// Note logs and counts an error of fault.Recover.
func (p *Panics) Note(ctx context.Context, worker string, err error) {
	p.count.WithLabelValues(worker).Inc()
	attrs := []any{"worker", worker, "err", err}
	if panicked, ok := errors.AsType[*fault.PanicError](err); ok {
		attrs = append([]any{"worker", worker}, panicked.LogAttrs()...)
	}
	p.log.ErrorContext(ctx, "panic", attrs...)
}

// keepRunning runs the worker until it returns. It notes a panic, and runs it again after
// workerPause, because the process and the other workers must go on.
func (w Worker) keepRunning(ctx context.Context, panics *Panics) {
	panics.Expect(w.Name)
	for {
		err := w.runOnce(ctx)
		if err == nil {
			return
		}
		panics.Note(ctx, w.Name, err)
		if !pace.Wait(ctx, workerPause) {
			return
		}
	}
}

func (w Worker) runOnce(ctx context.Context) (err error) {
	defer fault.Recover(&err)
	w.Run(ctx)
	return nil
}
