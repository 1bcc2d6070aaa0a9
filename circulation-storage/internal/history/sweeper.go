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
