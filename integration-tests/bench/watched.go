package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// measureWatched measures check-outs while events are delivered, and while traces are recorded.
func measureWatched(ctx context.Context, b *bench) (err error) {
	var received atomic.Int64
	reader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		received.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer reader.Close()
	with := func(name string, environ ...string) build {
		return build{name: name, dir: b.builds[0].dir, environ: environ}
	}
	collector := "OTEL_EXPORTER_OTLP_ENDPOINT=" + reader.URL
	var desks []*desk
	defer func() { err = errors.Join(err, stopAll(desks...)) }()
	for _, build := range []build{
		with("nothing"), with("events", "EVENTS_URL="+reader.URL),
		with("traces", collector), with("all traces", collector, "OTEL_TRACES_SAMPLER_ARG=1"),
	} {
		d, err := startDesk(ctx, b, build, noLimit, detours{})
		if err != nil {
			return err
		}
		desks = append(desks, d)
		if err := errors.Join(d.turn(ctx, true), awaitReader(ctx, d, &received)); err != nil {
			return err
		}
	}
	all, err := repeatDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	b.report.note("One client, with the lock on, %d repetitions. The reader of events and the collector of traces run in the client. "+
		"*Traces* records 1 %% of the requests, *all traces* each one.", len(all[0]))
	rows := [][]string{{"on", "a check-out, mean", "of nothing", "p50", "of nothing", "CPU us, services / PostgreSQL", "CPU, of nothing"}}
	for i, d := range desks {
		rows = append(rows, []string{
			d.build.name, formatMillis(time.Duration(median(all[i], readMean))), formatPrecise(medianRatio(all[i], all[0], readMean)),
			formatMillis(time.Duration(median(all[i], readDeskP50))), formatPrecise(medianRatio(all[i], all[0], readDeskP50)),
			formatCPU(all[i]), formatPrecise(medianRatio(all[i], all[0], readCPU)),
		})
	}
	b.report.table(rows)
	return nil
}

// awaitReader lends until the reader gets something, if the desk sends anything.
func awaitReader(ctx context.Context, d *desk, received *atomic.Int64) error {
	if d.build.environ == nil {
		return nil
	}
	const tries = 2000
	first, err := d.shelf.addCopies(ctx, tries)
	if err != nil {
		return err
	}
	before := received.Load()
	for i := range tries {
		if err := d.lend(ctx, first+i, first+i); err != nil || received.Load() > before {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
	return fmt.Errorf("%s: nothing was received", d.build.name)
}

// repeatDesks drives each desk in turn, often enough to see a difference of 1 %.
func repeatDesks(ctx context.Context, b *bench, desks []*desk) ([][]deskFigures, error) {
	all := make([][]deskFigures, len(desks))
	for range 5 * b.repetitions {
		for i, d := range desks {
			f, err := d.drive(ctx, 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.build.name, err)
			}
			all[i] = append(all[i], f)
		}
	}
	return all, nil
}

func readMean(f deskFigures) float64 {
	var sum time.Duration
	for _, latency := range f.latencies {
		sum += latency
	}
	return float64(sum) / float64(len(f.latencies))
}

func formatPrecise(ratio float64) string { return fmt.Sprintf("%.3f", ratio) }
