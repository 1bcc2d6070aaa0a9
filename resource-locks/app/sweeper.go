package app

import (
	"context"
	"log/slog"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/pace"
)

const (
	// sweepTimeout bounds one round of the sweeper.
	sweepTimeout = 30 * time.Second
	// sweepLimit is how many locks one statement sweeps at most.
	sweepLimit = 1000
	// historyInterval is how often old forced releases and unused namespaces are deleted.
	historyInterval = time.Hour
	// namespaceKeep is how long a namespace without claims stays.
	namespaceKeep = 24 * time.Hour
)

// sweeper counts expired locks and deletes old rows. No lock waits for it: an outdated
// lock equals no lock.
type sweeper struct {
	engine engines
	// keep is how long an ended lock stays, which the front Sunbird resumes.
	keep, retention, interval time.Duration
	failures                  *engine.Failures
}

func newSweeper(e engines, cfg Config, log *slog.Logger) *sweeper {
	return &sweeper{
		engine: e, failures: engine.NewFailures(log),
		keep: max(cfg.Sunbird.ResumeWithin, time.Hour), retention: cfg.HistoryRetention, interval: cfg.SweepInterval,
	}
}

// Run sweeps until ctx is done.
func (s *sweeper) Run(ctx context.Context) {
	var deleted time.Time
	for range pace.Every(ctx, 0, s.interval) {
		s.failures.Try(ctx, sweepTimeout, "sweeping locks", s.sweepLocks)
		if time.Since(deleted) >= historyInterval {
			deleted = time.Now()
			s.failures.Try(ctx, sweepTimeout, "deleting old forced releases", func(ctx context.Context) error {
				_, err := s.engine.lockStore.SweepReleases(ctx, s.retention)
				return err
			})
			s.failures.Try(ctx, sweepTimeout, "forgetting unused namespaces", func(ctx context.Context) error {
				_, err := s.engine.claimStore.SweepNamespaces(ctx, namespaceKeep)
				return err
			})
		}
	}
}

// sweepLocks sweeps until little is left.
func (s *sweeper) sweepLocks(ctx context.Context) error {
	for {
		expired, err := s.engine.locks.Sweep(ctx, s.keep, sweepLimit)
		if err != nil || len(expired) < sweepLimit {
			return err
		}
	}
}
