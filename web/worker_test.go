package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/web"
)

// idleFront serves nothing until it is drained.
type idleFront struct{ drained chan struct{} }

func (f idleFront) Listen(context.Context) error { return nil }

func (f idleFront) Serve(context.Context) error {
	<-f.drained
	return nil
}

func (f idleFront) Drain(context.Context) error {
	close(f.drained)
	return nil
}

// brokenWorker panics in its first two runs.
type brokenWorker struct{ runs atomic.Int32 }

func (w *brokenWorker) Run(ctx context.Context) {
	if w.runs.Add(1) <= 2 {
		panic("a bug")
	}
	<-ctx.Done()
}

func TestService_GoesOnAfterAPanicOfAWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var broken brokenWorker
		var others atomic.Int32
		registry := prometheus.NewRegistry()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- web.Service{
				Panics: web.NewPanics(registry, slog.New(slog.NewTextHandler(&log, nil))),
				Fronts: []web.Front{idleFront{make(chan struct{})}},
				Workers: []web.Worker{{Name: "broken", Run: broken.Run}, {Name: "other", Run: func(ctx context.Context) {
					others.Add(1)
					<-ctx.Done()
				}}},
			}.Run(ctx)
		}()
		began := time.Now()
		for i := range int32(3) {
			synctest.Wait() // the run has panicked, or works
			if n := broken.runs.Load(); n != i+1 {
				t.Errorf("%d runs after %s, want %d", n, time.Since(began), i+1)
			}
			select {
			case err := <-ended:
				t.Fatalf("the service ended after %s: %v", time.Since(began), err)
			case <-time.After(time.Second):
			}
		}
		if n := others.Load(); n != 1 {
			t.Errorf("the other worker began %d times, want once", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := broken.runs.Load(); n != 3 {
			t.Errorf("the worker ran %d times, want 3", n)
		}
		for _, text := range []string{"level=ERROR", "worker=broken", "a bug", "worker_test.go"} {
			if n := strings.Count(log.String(), text); n < 2 {
				t.Errorf("%q is in the log %d times, want once for each panic: %s", text, n, &log)
			}
		}
		if counted := countPanics(t, registry); !maps.Equal(counted, map[string]float64{"broken": 2, "other": 0}) {
			t.Errorf("counted %v", counted)
		}
	})
}

// countPanics returns the counted panics by worker.
func countPanics(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "worker_panics_total" {
		t.Fatalf("gathered %v, %v", families, err)
	}
	counted := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return counted
}

func TestService_StopsAWorkerThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- web.Service{
				Panics: web.NewPanics(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)),
				Fronts: []web.Front{idleFront{make(chan struct{})}},
				Workers: []web.Worker{{Name: "broken", Run: func(ctx context.Context) {
					close(began) // a second run panics here too
					<-ctx.Done()
					panic("a bug at the stop")
				}}},
			}.Run(ctx)
		}()
		<-began
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
