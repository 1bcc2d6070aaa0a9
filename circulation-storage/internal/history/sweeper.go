package history

import (
	"context"
	"log/slog"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
)

// NewSweeper returns what deletes check-outs that ended longer ago than retention,
// every interval, which must be positive. swept is told how many.
func NewSweeper(store Store, tenants sweep.Tenants, interval, retention time.Duration, swept func(n int), log *slog.Logger) *sweep.Sweeper {
	return &sweep.Sweeper{
		What: "past check-outs", Tenants: tenants, Interval: interval, Log: log, Swept: swept,
		Batch: func(ctx context.Context, limit int) (int, error) { return store.Sweep(ctx, retention, limit) },
	}
}

// Releases keeps the locks that staff released by force.
type Releases interface {
	// BlankReleases removes the patron from at most limit releases that are older
	// than age, and returns how many.
	BlankReleases(ctx context.Context, age time.Duration, limit int) (int, error)
}

// NewReleaseSweeper returns what removes the patrons from forced releases that are
// older than retention, every interval, which must be positive. Who released a lock
// and why stays.
func NewReleaseSweeper(releases Releases, tenants sweep.Tenants, interval, retention time.Duration, log *slog.Logger) *sweep.Sweeper {
	return &sweep.Sweeper{
		What: "patrons of forced releases", Tenants: tenants, Interval: interval, Log: log, Swept: func(int) {},
		Batch: func(ctx context.Context, limit int) (int, error) {
			return releases.BlankReleases(ctx, retention, limit)
		},
	}
}
