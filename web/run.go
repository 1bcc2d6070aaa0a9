package web

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Front listens on an address and serves one protocol.
type Front interface {
	// Listen opens the address, so that an address in use is reported before the service
	// starts to work.
	Listen(ctx context.Context) error
	// Serve serves until Drain is called. Requests do not end with ctx. It returns nil
	// after an orderly stop.
	Serve(ctx context.Context) error
	// Drain stops Serve after the running requests have finished.
	Drain(ctx context.Context) error
}

// Worker is a loop of the service. Run returns soon after ctx is done.
type Worker interface {
	Run(ctx context.Context)
}

// RunAll runs fronts, which listen already, and workers until ctx is done or a front
// fails. It then drains all fronts at once, and stops the workers last, because draining
// requests still give them work. It returns nil after an orderly stop.
func RunAll(ctx context.Context, fronts []Front, workers []Worker) error {
	working, stopWorkers := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { w.Run(working) })
	}
	g, serving := errgroup.WithContext(ctx)
	for _, f := range fronts {
		g.Go(func() error { return f.Serve(serving) })
		g.Go(func() error {
			<-serving.Done()
			return f.Drain(context.WithoutCancel(serving))
		})
	}
	err := g.Wait()
	stopWorkers()
	running.Wait()
	return err
}
