// Package sweep deletes rows that nobody needs any more, tenant after tenant, in
// batches. It only tidies: nothing may depend on when, or whether, it runs.
package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// batch keeps one DELETE short.
const batch = 500

// Tenants knows the installed tenants.
type Tenants interface {
	Tenants(ctx context.Context) ([]okapi.Tenant, error)
}

// Sweeper sweeps one kind of rows. All fields are required. Any number of
// instances may sweep the same database.
type Sweeper struct {
	// What names the rows in the log, in the plural.
	What    string
	Tenants Tenants
	// Batch deletes at most limit rows of the tenant in ctx and returns how many.
	Batch func(ctx context.Context, limit int) (int, error)
	// Interval between two turns; positive.
	Interval time.Duration
	// Swept is told how many rows went, once per tenant and turn, if any did.
	Swept func(n int)
	Log   *slog.Logger
}

// Run sweeps until ctx is done, first after a random part of the interval, so
// that instances started together do not sweep together. What fails is logged and
// tried again at the next turn.
func (s *Sweeper) Run(ctx context.Context) {
	timer := time.NewTimer(rand.N(s.Interval)) //nolint:gosec // spreads load, guards nothing
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			s.sweepAll(ctx)
			timer.Reset(s.Interval)
		}
	}
}

func (s *Sweeper) sweepAll(ctx context.Context) {
	ids, err := s.Tenants.Tenants(ctx)
	if err != nil {
		s.warn(ctx, err)
		return
	}
	for _, id := range ids {
		ctx := okapi.WithTenant(ctx, id)
		if err := s.sweep(ctx); err != nil {
			s.warn(ctx, err)
		}
	}
}

// sweep deletes batch after batch of one tenant.
func (s *Sweeper) sweep(ctx context.Context) error {
	total := 0
	for {
		n, err := s.Batch(ctx, batch)
		total += n
		if err != nil || n < batch {
			if total > 0 {
				s.Swept(total)
				s.Log.InfoContext(ctx, "swept", "what", s.What, "rows", total)
			}
			return err
		}
	}
}

// warn logs a failure, except for a tenant that is not served, which has a line of
// its own.
func (s *Sweeper) warn(ctx context.Context, err error) {
	if ctx.Err() == nil && !fault.Is(err, fault.TenantNotReady) && !fault.Is(err, fault.UnknownTenant) {
		s.Log.WarnContext(ctx, "not swept", "what", s.What, "err", err)
	}
}
