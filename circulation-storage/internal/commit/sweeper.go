package commit

import (
	"log/slog"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
)

// NewSweeper returns what forgets the check-ins of which no repeat comes any more,
// every interval, which must be positive.
func NewSweeper(store Store, tenants sweep.Tenants, interval time.Duration, log *slog.Logger) *sweep.Sweeper {
	return &sweep.Sweeper{
		What: "check-ins a day old", Tenants: tenants, Interval: interval, Log: log,
		Batch: store.SweepCheckIns, Swept: func(int) {},
	}
}
