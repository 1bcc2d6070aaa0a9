package app

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/resource-locks/internal/locket"
	"checkoutlock/resource-locks/internal/locktopus"
	"checkoutlock/resource-locks/internal/mutexapi"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/sunbird"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// bodyLimit is the largest body of a form for operators, in bytes.
const bodyLimit = 64 << 10

// recentEvents is how many events the page of locks can show.
const recentEvents = 200

// New opens the database, runs missing migrations and opens the addresses. So it returns
// every reason not to start. The names of the fronts are operators, locket, locktopus, sunbird
// and mutex.
func New(ctx context.Context, cfg Config, log *slog.Logger) (_ *web.Service, err error) {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	e := newEngines(db, log)
	err = db.Await(ctx, cfg.Database.Wait, func() error {
		if err := db.Migrations().Up(ctx); err != nil {
			return err
		}
		return e.claims.RenewLease(ctx)
	})
	if err != nil {
		return nil, err
	}
	service := newService(cfg, db, e, log)
	if err := service.Listen(ctx); err != nil {
		return nil, err
	}
	return service, nil
}

// engines is the engine of a process, with its stores.
type engines struct {
	locks      *engine.Locks
	claims     *engine.Claims
	events     *observers // of both
	lockStore  *postgres.LockStore
	claimStore *postgres.ClaimStore
}

func newEngines(db *postgres.DB, log *slog.Logger) engines {
	e := engines{events: &observers{}, lockStore: postgres.NewLockStore(db), claimStore: postgres.NewClaimStore(db)}
	e.locks, e.claims = engine.NewLocks(e.lockStore, e.events), engine.NewClaims(e.claimStore, e.events, log)
	return e
}

// newService lists what the process runs: the workers, and the fronts.
func newService(cfg Config, db *postgres.DB, e engines, log *slog.Logger) *web.Service {
	registry := prometheus.NewRegistry()
	registry.MustRegister(db.Collector())
	recent := engine.NewRecent(recentEvents)
	e.events.add(newMetrics(registry, e.locks, log))
	e.events.add(recent)
	guard := auth.NewGuard(cfg.Staff, httpapi.Permissions(), log)
	registry.MustRegister(guard.Collector())
	s := &web.Service{
		Name: "resource-locks", Traces: cfg.Traces, HTTP: cfg.HTTP, Panics: web.NewPanics(registry, log), Stopped: db.Close,
		Options: web.Options{
			Log: log, Registry: registry, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit,
			BelievePermissions: guard.Mode() == auth.Gateway, Ready: db.Ready,
			CountRefusal: db.CountRefusal,
		},
		Workers: []web.Worker{
			{Name: "lease", Run: e.claims.RunLease},
			{Name: "expiry of the lease", Run: e.claims.RunExpiry},
			{Name: "ends of claims", Run: e.claims.RunEnds},
			{Name: "claims", Run: e.claims.RunPolls},
			{Name: "sweep", Run: newSweeper(e, cfg, log).Run},
		},
	}
	s.Add(httpapi.New(httpapi.Options{
		Locks: e.locks, Claims: e.claims, Recent: recent, Guard: guard, SignOuts: postgres.NewSignOutStore(db), Log: log,
		Kinds: []httpapi.Kind{
			{Key: "content", Name: "locks.kindContent", Namespace: sunbird.Namespaces, Prefix: true},
			{Key: "drafts", Name: "locks.kindDrafts", Namespace: mutexapi.Namespace},
			{Key: "services", Name: "locks.kindServices", Namespace: locket.Namespace},
		},
	}))
	s.Add(locket.New(locket.Options{
		Settings: cfg.Locket, HTTP: cfg.HTTP, Locks: e.locks, Observe: e.events.add, Log: log, Registry: registry, CountRefusal: db.CountRefusal,
	}))
	s.Add(locktopus.New(locktopus.Options{
		Settings: cfg.Locktopus, HTTP: cfg.HTTP, Claims: e.claims, Panics: s.Panics, Log: log, CountRefusal: db.CountRefusal,
	}))
	s.Add(sunbird.New(sunbird.Options{
		Settings: cfg.Sunbird, HTTP: cfg.HTTP, Locks: e.locks, Guard: guard, Log: log, Registry: registry, CountRefusal: db.CountRefusal,
	}))
	s.Add(mutexapi.New(mutexapi.Options{
		Settings: cfg.Mutex, HTTP: cfg.HTTP, Locks: e.locks, Guard: guard, Log: log, Registry: registry, Ready: db.Ready,
		CountRefusal: db.CountRefusal,
	}))
	s.Add(Module().NewFront(s))
	return s
}
