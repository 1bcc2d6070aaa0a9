package claim

import (
	"log/slog"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
)

// NewSweeper returns what deletes forgotten keys every interval, which must be
// positive. swept is told how many.
func NewSweeper(store Store, tenants sweep.Tenants, interval time.Duration, swept func(n int), log *slog.Logger) *sweep.Sweeper {
	return &sweep.Sweeper{
		What: "forgotten idempotency keys", Tenants: tenants, Interval: interval, Log: log,
		Batch: store.Sweep, Swept: swept,
	}
}
