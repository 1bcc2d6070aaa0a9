package web

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
)

// Service is what a process runs: fronts and workers. Add the fronts, then call Listen, then
// Run or Close.
type Service struct {
	HTTP    config.HTTP // the address of all routes
	Options Options     // of their handler
	Panics  *Panics
	Name    string // of the service, in its traces
	Traces  config.Traces
	// Workers run beside those of the fronts.
	Workers []Worker
	// Stopped is called at the end of Run and of Close, when nothing works any more. It may be nil.
	Stopped func()

	fronts []Front
	errs   []error // why fronts cannot serve
	server *Server // at HTTP; nil without routes
	open   []Listener
}

// Add adds the front that a New made, or the error for Listen to return.
func (s *Service) Add(f Front, err error) {
	s.fronts, s.errs = append(s.fronts, f), append(s.errs, err)
}

// Listen opens all addresses, HTTP first. After an error none is open.
func (s *Service) Listen(ctx context.Context) error {
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	var err error
	if s.Options.traces, err = openTraces(ctx, s.Traces, s.Name, s.Options.Log); err != nil {
		return err
	}
	for _, l := range s.listeners() {
		if err := l.Listen(ctx); err != nil {
			return errors.Join(err, s.drain(ctx))
		}
		s.open = append(s.open, l)
	}
	return nil
}

// listeners returns those of all fronts. Routes share one.
func (s *Service) listeners() []Listener {
	routes := s.Routes()
	var listeners []Listener
	for _, f := range s.fronts {
		if f.Listener != nil {
			listeners = append(listeners, f.Listener)
		}
	}
	if len(routes) == 0 {
		return listeners
	}
	s.server = NewServer(s.HTTP, s.Options.Log)
	s.server.BeforeClose = s.endWaiting
	o := s.Options
	o.Ready = s.server.Ready(o.Ready)
	s.server.Handler = New(o, routes)
	return append([]Listener{s.server}, listeners...)
}

// Routes returns the routes of all fronts that share the service's address.
func (s *Service) Routes() []Route {
	var routes []Route
	for _, f := range s.fronts {
		routes = append(routes, f.Routes...)
	}
	return routes
}

// endWaiting ends the requests of routes that wait.
func (s *Service) endWaiting() {
	for _, f := range s.fronts {
		if f.BeforeClose != nil {
			f.BeforeClose()
		}
	}
}

// URL is where clients reach the front of that name. It is empty for a front that is off.
func (s *Service) URL(front string) string {
	for _, f := range s.fronts {
		switch {
		case f.Name != front:
		case f.Listener != nil:
			return f.Listener.URL()
		case s.server != nil:
			return s.server.URL()
		}
	}
	return ""
}

// Run runs the service until ctx is done or a front fails. It then drains all fronts at
// once, and stops the workers last, because draining requests still give them work. It
// returns nil after an orderly stop.
func (s *Service) Run(ctx context.Context) error {
	defer s.noteStopped()
	working, stopWorkers := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, w := range s.allWorkers() {
		running.Go(func() { w.keepRunning(working, s.Panics) })
	}
	g, serving := errgroup.WithContext(ctx)
	for _, l := range s.open {
		g.Go(func() (err error) {
			defer fault.Recover(&err)
			return l.Serve(serving)
		})
		g.Go(func() (err error) {
			<-serving.Done()
			defer fault.Recover(&err)
			return l.Drain(context.WithoutCancel(serving))
		})
	}
	err := g.Wait()
	stopWorkers()
	running.Wait()
	return err
}

func (s *Service) allWorkers() []Worker {
	workers := slices.Clip(s.Workers)
	for _, f := range s.fronts {
		workers = append(workers, f.Workers...)
	}
	return workers
}

// Close closes the addresses of a service that does not run.
func (s *Service) Close(ctx context.Context) error {
	defer s.noteStopped()
	return s.drain(ctx)
}

func (s *Service) noteStopped() {
	s.Options.traces.close(s.Options.Log)
	if s.Stopped != nil {
		s.Stopped()
	}
}

// drain drains all open addresses at once.
func (s *Service) drain(ctx context.Context) error {
	var g errgroup.Group
	for _, l := range s.open {
		g.Go(func() error { return l.Drain(ctx) })
	}
	return g.Wait()
}
