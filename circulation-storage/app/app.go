package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
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

// App is one instance of the service.
type App struct {
	cfg      Config
	log      *slog.Logger
	db       *postgres.DB
	tenants  []okapi.Tenant // those of TENANTS
	watch    *readiness.Watch
	server   *web.Server
	metrics  *metrics
	reg      *prometheus.Registry
	locks    *lock.Service
	sweepers []*sweep.Sweeper
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
	server, err := web.Listen(ctx, cfg.HTTP, log)
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, log: log, db: db, server: server, tenants: ids, reg: prometheus.NewRegistry()}
	a.metrics = newMetrics(a.reg)
	a.watch = readiness.NewWatch(db, tenantInterval, a.metrics.tenantsSeen, log)
	store := postgres.NewLockStore(db)
	a.reg.MustRegister(newHeldCollector(a.held(store)))
	a.locks = lock.NewService(store, a.metrics, log)
	a.sweepers = []*sweep.Sweeper{
		lock.NewSweeper(store, db, cfg.LockSweepInterval, a.metrics, log),
		claim.NewSweeper(postgres.NewIdempotencyStore(db), db, cfg.LockSweepInterval, a.metrics.keysSwept, log),
		commit.NewSweeper(postgres.NewCommitStore(db), db, cfg.LockSweepInterval, log),
		history.NewSweeper(postgres.NewHistoryStore(db), db, cfg.LockSweepInterval, cfg.HistoryRetention, a.metrics.historySwept, log),
		history.NewReleaseSweeper(postgres.NewLockChangeStore(db), db, cfg.LockSweepInterval, cfg.HistoryRetention, log),
	}
	return a, nil
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
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return a.server.Run(ctx, web.New(web.Options{
			Log: a.log, Registry: a.reg, RequestTimeout: a.cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit, Ready: a.ready,
		}, a.routes()), a.locks.Stop)
	})
	g.Go(func() error {
		a.watch.Run(ctx)
		return nil
	})
	for _, s := range a.sweepers {
		g.Go(func() error {
			s.Run(ctx)
			return nil
		})
	}
	return g.Wait()
}

func (a *App) routes() []web.Route {
	records := postgres.NewRecordStore(a.db, a.metrics.unfenced.Inc)
	rules := postgres.NewRulesStore(a.db)
	var all []web.Route
	for _, some := range [][]web.Route{
		httpapi.CheckoutLockRoutes(a.locks, a.cfg.lockTTL()),
		httpapi.LockChangeRoutes(postgres.NewLockChangeStore(a.db)),
		httpapi.CheckOutRoutes(commit.NewService(postgres.NewCommitStore(a.db), a.metrics)),
		httpapi.RenewalRoutes(postgres.NewCommitStore(a.db)),
		httpapi.CheckOutRequestRoutes(claim.NewService(postgres.NewIdempotencyStore(a.db))),
		httpapi.LockSettingsRoutes(postgres.NewLockSettingsStore(a.db)),
		httpapi.RulesRoutes(rules),
		httpapi.TenantRoutes(a.db, sample.New(records, rules)),
		httpapi.RecordRoutes(records),
		httpapi.RequestBatchRoutes(records),
		httpapi.PlacementRoutes(postgres.NewCommitStore(a.db)),
		httpapi.PatronBlockRoutes(postgres.NewPatronBlockStore(a.db)),
		httpapi.HistoryRoutes(postgres.NewHistoryStore(a.db)),
	} {
		all = append(all, some...)
	}
	return httpapi.ForServedTenants(a.watch, all)
}

// ready says no while the service stops, PostgreSQL does not answer or takes no
// writes, or a tenant of TENANTS lacks migrations. Any other tenant is refused by
// itself.
func (a *App) ready(ctx context.Context) error {
	if err := a.server.Draining(); err != nil {
		return err
	}
	return a.db.Ready(ctx, a.tenants)
}

// held counts the live locks of all tenants that are served.
func (a *App) held(store *postgres.LockStore) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		ids, err := a.db.Tenants(ctx)
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
