package stack

import (
	"context"
	"fmt"
	"log/slog"

	"checkoutlock/config"
	locks "checkoutlock/resource-locks/app"
)

// ResourceLocks is a running instance of resource-locks.
type ResourceLocks struct {
	// URL returns the address of a front: operators, locket, locktopus, sunbird or mutex.
	URL  func(front string) string
	stop func() error
}

// StartResourceLocks runs an instance on the database. environ has its settings in the
// form of os.Environ; without PORT, a free port is used for operators. The context bounds
// the start only; the caller stops the instance.
func StartResourceLocks(ctx context.Context, databaseURL string, environ []string, log *slog.Logger) (*ResourceLocks, error) {
	cfg := locks.DefaultConfig()
	cfg.HTTP.Port = 0
	if err := config.Load(&cfg, append([]string{"STAFF_AUTH=none", "DATABASE_URL=" + databaseURL}, environ...)); err != nil {
		return nil, err
	}
	service, err := locks.New(ctx, cfg, log.With("service", "resource-locks"))
	if err != nil {
		return nil, fmt.Errorf("starting resource-locks: %w", err)
	}
	return &ResourceLocks{URL: service.URL, stop: runUntilStopped(ctx, service.Run)}, nil
}

// Stop stops the instance and waits for its end. Repeated calls have no effect.
func (r *ResourceLocks) Stop() error { return r.stop() }
