// Package stack runs any number of circulation-storage and circulation instances in one
// process, on one database. It serves make run, make demo and the tests.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/config"
)

// Options configures a Stack. DatabaseURL is required.
type Options struct {
	DatabaseURL string
	// Storages and Circulations are the numbers of instances; 0 means 1.
	// Circulation i talks to storage i modulo Storages.
	Storages, Circulations int
	// Via, if set, maps a storage's address to the address that circulation instance i
	// uses, such as that of a proxy.
	Via func(i int, storage string) string
	// DatabaseVia, if set, maps the database's address to the address that storage
	// instance i uses.
	DatabaseVia func(i int, databaseURL string) string
	// StorageEnv and CirculationEnv are settings in the form of os.Environ. Without PORT,
	// a free port is used.
	StorageEnv, CirculationEnv []string
	// CirculationEnvOf, if set, returns settings of circulation instance i, which win over
	// CirculationEnv.
	CirculationEnvOf func(i int) []string
	// OnStep, if set, is called at each step of each check-out of circulation instance i.
	OnStep func(ctx context.Context, i int, step circulation.Step)
	// Log gets the logs of both services; nil discards them.
	Log *slog.Logger
}

// Stack is a set of running instances.
type Stack struct {
	Storages     []string // base URLs
	Circulations []string
	// Machines are the addresses of SIP2 of the instances, "" for one without.
	Machines []string

	stopStorage, stopCirculation []func() error
}

// Start runs the instances and returns when all of them listen. The context bounds the
// start only; the caller stops the stack.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	for range max(1, o.Storages) {
		if err := s.startStorage(ctx, o); err != nil {
			return nil, fmt.Errorf("starting circulation-storage: %w", err)
		}
	}
	for i := range max(1, o.Circulations) {
		if err := s.startCirculation(ctx, o, i); err != nil {
			return nil, fmt.Errorf("starting circulation: %w", err)
		}
	}
	return s, nil
}

func (s *Stack) startStorage(ctx context.Context, o Options) error {
	url := o.DatabaseURL
	if o.DatabaseVia != nil {
		url = o.DatabaseVia(len(s.Storages), url)
	}
	cfg := storage.DefaultConfig()
	cfg.HTTP.Port = 0
	if err := config.Load(&cfg, append([]string{"DATABASE_URL=" + url}, o.StorageEnv...)); err != nil {
		return err
	}
	a, err := storage.New(ctx, cfg, o.Log.With("service", "circulation-storage", "instance", len(s.Storages)))
	if err != nil {
		return err
	}
	s.Storages = append(s.Storages, a.URL("endpoints"))
	s.stopStorage = append(s.stopStorage, runUntilStopped(ctx, a.Run))
	return nil
}

func (s *Stack) startCirculation(ctx context.Context, o Options, i int) error {
	url := s.Storages[i%len(s.Storages)]
	if o.Via != nil {
		url = o.Via(i, url)
	}
	cfg := circulation.DefaultConfig()
	cfg.HTTP.Port = 0
	environ := append([]string{"STAFF_AUTH=none", "STORAGE_URL=" + url, fmt.Sprintf("INSTANCE_NAME=circulation-%d", i+1)}, o.CirculationEnv...)
	if o.CirculationEnvOf != nil {
		environ = append(environ, o.CirculationEnvOf(i)...)
	}
	if err := config.Load(&cfg, environ); err != nil {
		return err
	}
	var onStep []func(context.Context, circulation.Step)
	if o.OnStep != nil {
		onStep = append(onStep, func(ctx context.Context, step circulation.Step) { o.OnStep(ctx, i, step) })
	}
	a, err := circulation.New(ctx, cfg, o.Log.With("service", "circulation", "instance", i), onStep...)
	if err != nil {
		return err
	}
	s.Circulations = append(s.Circulations, a.URL("endpoints"))
	s.Machines = append(s.Machines, a.URL("sip2"))
	s.stopCirculation = append(s.stopCirculation, runUntilStopped(ctx, a.Run))
	return nil
}

// runUntilStopped runs f in a goroutine. The returned function ends it and waits for it.
func runUntilStopped(ctx context.Context, f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// StopStorage stops storage i and waits for its end. Repeated calls have no effect.
func (s *Stack) StopStorage(i int) error { return s.stopStorage[i]() }

// StopCirculation stops circulation i and waits for its end. Repeated calls have no effect.
func (s *Stack) StopCirculation(i int) error { return s.stopCirculation[i]() }

// Stop stops all running instances in the reverse order of their start, and waits for them.
func (s *Stack) Stop() error {
	var errs []error
	for _, stops := range [][]func() error{s.stopCirculation, s.stopStorage} {
		for _, stop := range slices.Backward(stops) {
			errs = append(errs, stop())
		}
	}
	return errors.Join(errs...)
}
