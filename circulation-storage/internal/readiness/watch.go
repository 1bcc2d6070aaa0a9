package readiness

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
)

// Schemas reads the states of the tenants' schemas.
type Schemas interface {
	// Schemas returns all schemas with our table of versions.
	Schemas(ctx context.Context) ([]Schema, error)
	// Schema returns the schema of the tenant in ctx, installed or not.
	Schema(ctx context.Context) (Schema, error)
}

// Watch polls the tenants' schemas in the background. It remembers the tenants that cannot
// be served, so that requests of other tenants need no query. It is safe for concurrent
// use.
type Watch struct {
	schemas  Schemas
	interval time.Duration
	observe  func(State, int)
	log      *slog.Logger

	mu    sync.Mutex
	unfit map[okapi.Tenant]State // nil until a poll has succeeded
}

// NewWatch returns a Watch that polls each interval, which must be positive. observe
// receives the number of tenants in each state, after each poll.
func NewWatch(schemas Schemas, interval time.Duration, observe func(State, int), log *slog.Logger) *Watch {
	return &Watch{schemas: schemas, interval: interval, observe: observe, log: log}
}

// Run polls at once and then each interval, until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	for range pace.Every(ctx, 0, w.interval) {
		w.pollSchemas(ctx)
	}
}

// pollTimeout bounds the reading of all schemas. A restore locks the table of versions of its tenant for
// minutes, and calls of other tenants need the connection.
const pollTimeout = 5 * time.Second

// pollSchemas reads all schemas, counts their states and logs changes. It does not log an outage, because
// the connection watch does.
func (w *Watch) pollSchemas(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, min(w.interval, pollTimeout))
	defer cancel()
	schemas, err := w.schemas.Schemas(reading)
	if err != nil {
		if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Timeout) {
			w.log.WarnContext(ctx, "the tenants' schema versions could not be read", "err", err)
		}
		return
	}
	counts, unfit := map[State]int{}, map[okapi.Tenant]State{}
	for _, s := range schemas {
		if s.State() != Current {
			unfit[s.Tenant] = s.State()
		}
		if s.Tenant.String() == okapi.DrillTenant {
			continue // the next drill upgrades it, and nothing else is done there
		}
		counts[s.State()]++
		w.logChange(ctx, s)
	}
	for _, state := range []State{Current, Behind, Dirty} { // those of schemas with our table of versions
		w.observe(state, counts[state])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfit = unfit
}

// logChange logs a change of the tenant's state.
func (w *Watch) logChange(ctx context.Context, s Schema) {
	w.mu.Lock()
	before, known := w.unfit[s.Tenant]
	w.mu.Unlock()
	ctx = okapi.WithTenant(ctx, s.Tenant)
	switch state := s.State(); {
	case state == Current && known:
		w.log.InfoContext(ctx, "the tenant is served again", "version", s.Version)
	case state != Current && state != before:
		w.log.WarnContext(ctx, "the tenant is not served", "state", state, "reason", s.Problem())
	}
}

// Check returns why the tenant in ctx is not served, nil if it is. It reads the schema only if the last
// poll found a problem, so an upgrade counts at once, or if no poll has succeeded yet.
func (w *Watch) Check(ctx context.Context) error {
	id, err := okapi.TenantFrom(ctx)
	w.mu.Lock()
	_, suspect := w.unfit[id]
	suspect = suspect || w.unfit == nil && err == nil // a call without a tenant needs no schema
	w.mu.Unlock()
	if !suspect {
		return nil
	}
	s, err := w.schemas.Schema(ctx)
	if err != nil {
		return fmt.Errorf("reading the tenant's schema version: %w", err)
	}
	return s.Fault()
}

// Explain adds the problem of the schema to the error of a request that failed because of
// it. It returns other errors unchanged.
func (w *Watch) Explain(ctx context.Context, err error) error {
	code := fault.CodeOf(err)
	if code != fault.UnknownTenant && code != fault.TenantNotReady {
		return err
	}
	s, readErr := w.schemas.Schema(ctx)
	switch {
	case readErr != nil:
		return err
	case s.State() != Current:
		return fmt.Errorf("%w (%w)", s.Fault(), err)
	case code == fault.UnknownTenant: // it was installed while the request ran
		return &fault.Error{
			Code: fault.TenantNotReady, RetryAfter: time.Second, Err: err,
			Msg: fmt.Sprintf("Tenant %s was being installed: send the request again", s.Tenant),
		}
	}
	return fault.Wrap(err, fault.Internal, "Internal server error")
}
