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

	"checkoutlock/config"
	"checkoutlock/web"
)

// idle serves nothing until it is drained.
type idle struct{ drained chan struct{} }

func (l idle) Listen(context.Context) error { return nil }

func (l idle) URL() string { return "" }

func (l idle) Serve(context.Context) error {
	<-l.drained
	return nil
}

func (l idle) Drain(context.Context) error {
	close(l.drained)
	return nil
}

// runIdle runs workers beside a front that serves nothing.
func runIdle(ctx context.Context, panics *web.Panics, workers ...web.Worker) error {
	s := &web.Service{Panics: panics, Workers: workers}
	s.Add(web.Front{Listener: idle{make(chan struct{})}}, nil)
	if err := s.Listen(ctx); err != nil {
		return err
	}
	return s.Run(ctx)
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
			panics := web.NewPanics(registry, config.Log{Level: "info"}.New(&log, ""))
			ended <- runIdle(ctx, panics, web.Worker{Name: "broken", Run: broken.Run},
				web.Worker{Name: "other", Run: func(ctx context.Context) {
					others.Add(1)
					<-ctx.Done()
				}})
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
		for _, text := range []string{
			`"level":"ERROR"`, `"worker":"broken"`, `"err":"a bug"`, `"stack":"goroutine`, "worker_test.go", "keepRunning",
		} {
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
			panics := web.NewPanics(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			ended <- runIdle(ctx, panics, web.Worker{Name: "broken", Run: func(ctx context.Context) {
				close(began) // a second run panics here too
				<-ctx.Done()
				panic("a bug at the stop")
			}})
		}()
		<-began
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
