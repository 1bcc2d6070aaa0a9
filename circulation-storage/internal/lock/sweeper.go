package lock

import (
	"context"
	"log/slog"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
)

// sweepGrace is how long outdated locks stay, for whoever wants to see why a
// check-out went wrong.
const sweepGrace = 10 * time.Minute

// NewSweeper returns what deletes locks that have been outdated for more than 10
// minutes, every interval, which must be positive. An outdated lock stands in
// nobody's way.
func NewSweeper(store Store, tenants sweep.Tenants, interval time.Duration, obs Observer, log *slog.Logger) *sweep.Sweeper {
	return &sweep.Sweeper{
		What: "outdated locks", Tenants: tenants, Interval: interval, Log: log,
		Batch: func(ctx context.Context, limit int) (int, error) { return store.Sweep(ctx, sweepGrace, limit) },
		Swept: func(n int) { obs.Swept(n) },
	}
}
