package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/circulation-storage/internal/sample"
	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// bodyLimit is the largest request body in bytes; FOLIO's largest records are
// instances of some ten kilobytes.
const bodyLimit = 1 << 20

// tenantInterval is how often the tenants' schemas are looked at.
const tenantInterval = 30 * time.Second

// App is one instance of the service: it listens, but does not serve yet.
type App struct {
	db      *postgres.DB
	server  *web.Server
	fronts  []web.Front
	workers []web.Worker
}

// New opens the port and the connection pool and installs the configured tenants,
// so that every reason not to start shows up here. On error nothing is left open.
func New(ctx context.Context, cfg Config, log *slog.Logger) (_ *App, err error) {
	db, err := open(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if err := await(ctx, db, cfg.Wait); err != nil {
		return nil, err
	}
	ids, err := cfg.tenants()
	if err != nil {
		return nil, err
	}
	if err := install(ctx, db, ids, nil); err != nil {
		return nil, err
	}
	a := wire(cfg, log, db, ids)
	for _, f := range a.fronts {
		if err := f.Listen(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// wire connects the parts of the service. tenants are those of TENANTS.
func wire(cfg Config, log *slog.Logger, db *postgres.DB, tenants []okapi.Tenant) *App {
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	watch := readiness.NewWatch(db, tenantInterval, m.tenantsSeen, log)
	store := postgres.NewLockStore(db)
	reg.MustRegister(newHeldCollector(countHeld(db, store)))
	locks := lock.NewService(store, m, log)
	server := web.NewServer(cfg.HTTP, log)
	server.BeforeClose = locks.Stop
	server.Handler = web.New(web.Options{
		Log: log, Registry: reg, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit,
		Ready: func(ctx context.Context) error {
			if err := server.Draining(); err != nil {
				return err
			}
			return db.Ready(ctx, tenants) // a tenant outside TENANTS is refused by itself
		},
	}, httpapi.ForServedTenants(watch, routes(cfg, db, locks, m)))
	workers := []web.Worker{watch}
	for _, rows := range sweptRows(db, cfg.HistoryRetention, m) {
		workers = append(workers, sweep.New(rows, db, cfg.LockSweepInterval, log))
	}
	return &App{db: db, server: server, fronts: []web.Front{server}, workers: workers}
}

func open(ctx context.Context, cfg Config, log *slog.Logger) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Config{
		URL: cfg.URL, MigrateURL: cfg.MigrateURL, MaxConns: cfg.MaxConns, StatementTimeout: cfg.HTTP.RequestTimeout,
	}, log)
}

// await waits for the database.
func await(ctx context.Context, db *postgres.DB, patience time.Duration) error {
	if err := db.Await(ctx, patience); err != nil {
		return fmt.Errorf("connecting to the database of DATABASE_URL: %w", err)
	}
	return nil
}

// install installs or upgrades the tenants, and does more for each if there is
// more to do.
func install(ctx context.Context, db *postgres.DB, ids []okapi.Tenant, more func(context.Context) error) error {
	for _, id := range ids {
		if err := db.Install(ctx, id); err != nil {
			return err
		}
		if more == nil {
			continue
		}
		if err := more(okapi.WithTenant(ctx, id)); err != nil {
			return fmt.Errorf("tenant %s: %w", id, err)
		}
	}
	return nil
}

// URL is the address to reach the instance at.
func (a *App) URL() string { return a.server.URL() }

// Run serves until ctx is done, then stops in order: readiness says no, waiters
// for locks are answered, running requests finish, the pool is closed. It returns
// nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	defer a.db.Close() // last: requests still use it while they finish
	return web.RunAll(ctx, a.fronts, a.workers)
}

func routes(cfg Config, db *postgres.DB, locks *lock.Service, m *metrics) []web.Route {
	commits := postgres.NewCommitStore(db)
	records := postgres.NewRecordStore(db, m.unfenced.Inc)
	rules := postgres.NewRulesStore(db)
	return slices.Concat(
		httpapi.CheckoutLockRoutes(locks, cfg.lockTTL()),
		httpapi.LockChangeRoutes(postgres.NewLockChangeStore(db)),
		httpapi.CommitRoutes(commit.NewService(commits, m), commits, commits),
		httpapi.CheckOutRequestRoutes(claim.NewService(postgres.NewClaimStore(db))),
		httpapi.LockSettingsRoutes(postgres.NewLockSettingsStore(db)),
		httpapi.RulesRoutes(rules),
		httpapi.TenantRoutes(db, sample.New(records, rules)),
		httpapi.RecordRoutes(records),
		httpapi.RequestBatchRoutes(records),
		httpapi.PatronBlockRoutes(postgres.NewPatronBlockStore(db)),
		httpapi.HistoryRoutes(postgres.NewHistoryStore(db)),
	)
}

// countHeld counts the live locks of all tenants that are served.
func countHeld(db *postgres.DB, store *postgres.LockStore) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		ids, err := db.Tenants(ctx)
		if err != nil {
			return 0, err
		}
		sum := 0
		for _, id := range ids {
			n, err := store.CountHeld(okapi.WithTenant(ctx, id))
			if fault.Is(err, fault.UnknownTenant) || fault.Is(err, fault.TenantNotReady) {
				continue
			}
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
}
