package web

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
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

// Service is what a process runs. All fields are required, except Workers.
type Service struct {
	Panics  *Panics
	Fronts  []Front // which listen already
	Workers []Worker
}

// Run runs the service until ctx is done or a front fails. It then drains all fronts at
// once, and stops the workers last, because draining requests still give them work. It
// returns nil after an orderly stop.
func (s Service) Run(ctx context.Context) error {
	working, stopWorkers := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, w := range s.Workers {
		running.Go(func() { w.keepRunning(working, s.Panics) })
	}
	g, serving := errgroup.WithContext(ctx)
	for _, f := range s.Fronts {
		g.Go(func() (err error) {
			defer fault.Recover(&err)
			return f.Serve(serving)
		})
		g.Go(func() (err error) {
			<-serving.Done()
			defer fault.Recover(&err)
			return f.Drain(context.WithoutCancel(serving))
		})
	}
	err := g.Wait()
	stopWorkers()
	running.Wait()
	return err
}
