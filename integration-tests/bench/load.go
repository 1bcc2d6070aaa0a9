package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// figures are the results of one repetition.
type figures struct {
	perSecond float64
	latencies []time.Duration // sorted
}

// percentile returns the latency that share of the operations kept to; 0.5 is the median.
func (f figures) percentile(share float64) time.Duration {
	if len(f.latencies) == 0 {
		return 0
	}
	return f.latencies[min(len(f.latencies)-1, int(share*float64(len(f.latencies))))]
}

// drive lets clients repeat operate for the duration d. The first error ends all of them.
// operate gets the client's number and how many operations that client did before.
func drive(ctx context.Context, clients int, d time.Duration, operate func(ctx context.Context, client, n int) error) (figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over atomic.Bool
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	perClient := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	began := time.Now()
	for client := range clients {
		wg.Go(func() {
			for n := 0; !over.Load() && ctx.Err() == nil; n++ {
				start := time.Now()
				if err := operate(ctx, client, n); err != nil {
					cancel(err)
					return
				}
				perClient[client] = append(perClient[client], time.Since(start))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return figures{}, err
	}
	return summarize(slices.Concat(perClient...), took), nil
}

// summarize makes figures of the latencies that were seen while took passed.
func summarize(latencies []time.Duration, took time.Duration) figures {
	slices.Sort(latencies)
	return figures{perSecond: float64(len(latencies)) / took.Seconds(), latencies: latencies}
}

// median returns the middle one of the values that read gets from each repetition.
func median[T any, V cmp.Ordered](all []T, read func(T) V) V {
	values := make([]V, len(all))
	for i, one := range all {
		values[i] = read(one)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// medianRatio returns the median of the repetitions' ratios. What is compared runs one after the other
// in each repetition, so a host that changes its speed changes both.
func medianRatio[T any](all, base []T, read func(T) float64) float64 {
	ratios := make([]float64, len(all))
	for i := range all {
		ratios[i] = read(all[i]) / read(base[i])
	}
	return median(ratios, func(ratio float64) float64 { return ratio })
}

// formatRatios writes the median ratio.
func formatRatios[T any](all, base []T, read func(T) float64) string {
	return formatRatio(medianRatio(all, base, read), 1)
}

func readRate(f figures) float64      { return f.perSecond }
func readP50(f figures) time.Duration { return f.percentile(0.5) }
func readP99(f figures) time.Duration { return f.percentile(0.99) }
