package readiness

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Schemas reads what the tenants' schemas have.
type Schemas interface {
	// Schemas returns all schemas that have our table of versions.
	Schemas(ctx context.Context) ([]Schema, error)
	// Schema returns that of the tenant in ctx, installed or not.
	Schema(ctx context.Context) (Schema, error)
}

// Watch looks at the tenants' schemas in the background. It remembers those that
// cannot be served, so that a request of any other tenant costs no query. It is
// safe for concurrent use.
type Watch struct {
	schemas  Schemas
	interval time.Duration
	observe  func(State, int)
	log      *slog.Logger

	mu    sync.Mutex
	unfit map[okapi.Tenant]State
}

// NewWatch returns a Watch that looks each interval, which must be positive.
// observe gets the number of tenants in each state, after each look.
func NewWatch(schemas Schemas, interval time.Duration, observe func(State, int), log *slog.Logger) *Watch {
	return &Watch{schemas: schemas, interval: interval, observe: observe, log: log, unfit: map[okapi.Tenant]State{}}
}

// Run looks at once and then each interval, until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads all schemas, counts their states and logs what changed. An outage is
// logged by the database's own watch, so it is silent here.
func (w *Watch) look(ctx context.Context) {
	schemas, err := w.schemas.Schemas(ctx)
	if err != nil {
		if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Timeout) {
			w.log.WarnContext(ctx, "the tenants' schema versions could not be read", "err", err)
		}
		return
	}
	counts, unfit := map[State]int{}, map[okapi.Tenant]State{}
	for _, s := range schemas {
		counts[s.State()]++
		if s.State() != Current {
			unfit[s.Tenant] = s.State()
		}
		w.logChange(ctx, s)
	}
	for _, state := range installedStates() {
		w.observe(state, counts[state])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfit = unfit
}

// logChange writes one line when the tenant's state is another one than before.
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

// Check returns why the tenant in ctx is not served, nil when it is. It reads the
// schema only if the last look found fault with it, so an upgrade counts at once.
func (w *Watch) Check(ctx context.Context) error {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return nil //nolint:nilerr // a call without a tenant needs no schema
	}
	w.mu.Lock()
	_, suspect := w.unfit[id]
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

// Explain returns the error of a request that met a schema without something that
// this build needs. It reads the schema to say what that is; other errors stay.
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
