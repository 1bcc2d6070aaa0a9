package lock

import (
	"context"
	"log/slog"
	"time"

	"checkoutlock/schemas/tenant"
)

const (
	// sweepGrace is how long outdated locks stay, for whoever wants to see why a
	// check-out went wrong.
	sweepGrace = 10 * time.Minute
	// sweepBatch keeps one DELETE short.
	sweepBatch = 500
)

// Tenants knows the installed tenants.
type Tenants interface {
	Tenants(ctx context.Context) ([]tenant.ID, error)
}

// Sweeper deletes locks that have been outdated for more than 10 minutes. It only
// tidies: an outdated lock stands in nobody's way. Any number of instances may
// sweep the same database.
type Sweeper struct {
	store    Store
	tenants  Tenants
	interval time.Duration
	obs      Observer
	log      *slog.Logger
}

// NewSweeper returns a Sweeper that sweeps every interval, which must be
// positive.
func NewSweeper(store Store, tenants Tenants, interval time.Duration, obs Observer, log *slog.Logger) *Sweeper {
	return &Sweeper{store: store, tenants: tenants, interval: interval, obs: obs, log: log}
}

// Run sweeps until ctx is done, first after a random part of the interval, so
// that instances started together do not sweep together. What fails is logged and
// tried again at the next turn.
func (s *Sweeper) Run(ctx context.Context) {
	timer := time.NewTimer(randomly(s.interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			s.sweepAll(ctx)
			timer.Reset(s.interval)
		}
	}
}

func (s *Sweeper) sweepAll(ctx context.Context) {
	ids, err := s.tenants.Tenants(ctx)
	if err != nil {
		s.warn(ctx, err)
		return
	}
	for _, id := range ids {
		ctx := tenant.NewContext(ctx, id)
		if err := s.sweep(ctx); err != nil {
			s.warn(ctx, err)
		}
	}
}

// sweep deletes batch after batch of one tenant.
func (s *Sweeper) sweep(ctx context.Context) error {
	total := 0
	for {
		n, err := s.store.Sweep(ctx, sweepGrace, sweepBatch)
		total += n
		if err != nil || n < sweepBatch {
			if total > 0 {
				s.obs.Swept(total)
				s.log.InfoContext(ctx, "outdated locks swept", "locks", total)
			}
			return err
		}
	}
}

func (s *Sweeper) warn(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.log.WarnContext(ctx, "outdated locks not swept", "err", err)
	}
}
