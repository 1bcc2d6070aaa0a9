// Package sweep deletes old rows and closes expired requests, tenant after tenant, in batches. A
// request expires when it runs; else it only saves space.
package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
)

// batch keeps one DELETE short.
const batch = 500

// Rows is one kind of old rows.
type Rows struct {
	// Name is the plural, for the log.
	Name string
	// Sweep deletes, closes or blanks rows of the tenant in ctx, in a batch bounded by limit, and
	// returns how many. It is called again while they are limit or more.
	Sweep func(ctx context.Context, limit int) (int, error)
	// Swept receives how many rows were swept, once per tenant and turn, if any
	// were. It may be nil.
	Swept func(n float64)
}

// OlderThan returns a Rows.Sweep that deletes what is older than age.
func OlderThan(age time.Duration, del func(ctx context.Context, age time.Duration, limit int) (int, error)) func(context.Context, int) (int, error) {
	return func(ctx context.Context, limit int) (int, error) { return del(ctx, age, limit) }
}

// Sweeper sweeps one kind of rows. Any number of instances may sweep the same database.
type Sweeper struct {
	rows     Rows
	tenants  func(context.Context) ([]okapi.Tenant, error)
	interval time.Duration
	log      *slog.Logger
}

// New returns a sweeper of the listed tenants that runs each interval, which must be positive.
func New(rows Rows, tenants func(context.Context) ([]okapi.Tenant, error), interval time.Duration, log *slog.Logger) *Sweeper {
	return &Sweeper{rows: rows, tenants: tenants, interval: interval, log: log}
}

// Run sweeps until ctx is done, first after a random part of the interval, so
// that instances started together do not sweep together. It logs failures and
// repeats the sweep at the next turn.
func (s *Sweeper) Run(ctx context.Context) {
	for range pace.Every(ctx, rand.N(s.interval), s.interval) { //nolint:gosec // spreads load, guards nothing
		s.sweepTenants(ctx)
	}
}

// callTimeout bounds a batch and the list of tenants. Through PgBouncer no session has a time-out, so
// one that gets no answer would be the last one.
const callTimeout = time.Minute

func (s *Sweeper) sweepTenants(ctx context.Context) {
	listing, cancel := context.WithTimeout(ctx, callTimeout)
	ids, err := s.tenants(listing)
	cancel()
	if err != nil {
		s.logFailure(ctx, err)
		return
	}
	for _, id := range ids {
		ctx := okapi.WithTenant(ctx, id)
		err := s.sweepTenant(ctx)
		if err != nil {
			s.logFailure(ctx, err)
		}
		if fault.Is(err, fault.Unavailable) && !fault.ChangedNothing(err) { // it is that of all tenants, unlike a lack of one statement
			return
		}
	}
}

// sweepTenant deletes batch after batch of the tenant in ctx.
func (s *Sweeper) sweepTenant(ctx context.Context) error {
	total := 0
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		n, err := s.rows.Sweep(call, batch)
		cancel()
		total += n
		if err == nil && n >= batch {
			continue
		}
		if total > 0 {
			if s.rows.Swept != nil {
				s.rows.Swept(float64(total))
			}
			s.log.InfoContext(ctx, "swept", "what", s.rows.Name, "rows", total)
		}
		return err
	}
}

// logFailure leaves out tenants that are not served, because readiness logs those. An outage has a line of its own.
func (s *Sweeper) logFailure(ctx context.Context, err error) {
	level := slog.LevelWarn
	if fault.Is(err, fault.Unavailable) {
		level = slog.LevelDebug
	}
	if ctx.Err() == nil && !fault.Is(err, fault.TenantNotReady) && !fault.Is(err, fault.UnknownTenant) {
		s.log.Log(ctx, level, "not swept", "what", s.rows.Name, "err", err)
	}
}
