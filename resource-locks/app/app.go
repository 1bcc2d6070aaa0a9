package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"

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

// App is one instance of the service. It listens and does not serve yet.
type App struct {
	db      *postgres.DB
	service web.Service
	// URLs are the addresses of the fronts that are on, by name.
	urls map[string]string
}

// parts is what fronts are made of.
type parts struct {
	cfg      Config
	log      *slog.Logger
	registry *prometheus.Registry
	locks    *engine.Locks
	claims   *engine.Claims
	guard    *auth.Guard
	events   *observers
}

// New opens the database, runs missing migrations and opens the addresses. So it returns
// every reason not to start.
func New(ctx context.Context, cfg Config, log *slog.Logger) (_ *App, err error) {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if err := db.Await(ctx, cfg.Database.Wait); err != nil {
		return nil, err
	}
	if err := db.Install(ctx); err != nil {
		return nil, err
	}
	a := &App{db: db, urls: map[string]string{}}
	if err := a.connectParts(ctx, cfg, log); err != nil {
		return nil, errors.Join(err, a.closeFronts(ctx))
	}
	return a, nil
}

// connectParts connects the engine with the fronts that are on, and opens their addresses.
func (a *App) connectParts(ctx context.Context, cfg Config, log *slog.Logger) error {
	p := parts{cfg: cfg, log: log, registry: prometheus.NewRegistry(), events: &observers{}}
	store, claims := postgres.NewLockStore(a.db), postgres.NewClaimStore(a.db)
	p.locks = engine.NewLocks(store, p.events)
	p.claims = engine.NewClaims(claims, p.events, log)
	if err := p.claims.Begin(ctx); err != nil {
		return err
	}
	recent := engine.NewRecent(recentEvents)
	p.events.list = append(p.events.list, newMetrics(p.registry, p.locks.Count, log), recent)
	a.service.Panics = web.NewPanics(p.registry, log)
	a.service.Workers = []web.Worker{
		{Name: "lease", Run: p.claims.RunLease},
		{Name: "expiry of the lease", Run: p.claims.RunExpiry},
		{Name: "claims", Run: p.claims.RunPolls},
		{Name: "sweep", Run: newSweeper(p.locks, store, claims, cfg, log).Run},
	}

	operators := web.NewServer(cfg.HTTP, log)
	p.guard = auth.NewGuard(cfg.Staff, nil, log)
	pages, err := httpapi.New(p.locks, p.claims, recent, p.guard)
	if err != nil {
		return err
	}
	operators.Handler = web.New(web.Options{
		Log: log, Registry: p.registry, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit,
		BelievePermissions: p.guard.Mode() == auth.Gateway,
		Ready:              operators.Ready(a.db.Ready),
	}, pages.Routes())
	if err := a.listen(ctx, "operators", operators, operators.URL); err != nil {
		return err
	}
	for _, add := range []func(context.Context, parts) error{a.addLocket, a.addLocktopus, a.addSunbird, a.addMutex} {
		if err := add(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// listen opens the address of a front and adds it.
func (a *App) listen(ctx context.Context, name string, front web.Front, url func() string) error {
	if err := front.Listen(ctx); err != nil {
		return err
	}
	a.service.Fronts = append(a.service.Fronts, front)
	a.urls[name] = url()
	return nil
}

func (a *App) addLocket(ctx context.Context, p parts) error {
	if !p.cfg.Locket.Enabled() {
		return nil
	}
	front := locket.New(locket.Options{
		Settings: p.cfg.Locket, Locks: p.locks, Log: p.log.With("front", "locket"), Registry: p.registry,
		ShutdownTimeout: p.cfg.HTTP.ShutdownTimeout,
	})
	p.events.list = append(p.events.list, front)
	return a.listen(ctx, "locket", front, front.Addr)
}

func (a *App) addLocktopus(ctx context.Context, p parts) error {
	if p.cfg.Locktopus.Addr == "" {
		return nil
	}
	log := p.log.With("front", "locktopus")
	handler := locktopus.New(p.claims, p.cfg.Locktopus, a.service.Panics, log)
	return a.listenHTTP(ctx, p, "locktopus", p.cfg.Locktopus.Addr, func(s *web.Server) {
		s.Handler, s.BeforeClose = handler, handler.Stop
	})
}

func (a *App) addSunbird(ctx context.Context, p parts) error {
	if p.cfg.Sunbird.Addr == "" {
		return nil
	}
	handler, err := sunbird.New(p.locks, p.cfg.Sunbird, p.guard, p.registry, p.log.With("front", "sunbird"))
	if err != nil {
		return err
	}
	a.service.Workers = append(a.service.Workers, web.Worker{Name: "notices of Sunbird", Run: handler.SendNotices})
	return a.listenHTTP(ctx, p, "sunbird", p.cfg.Sunbird.Addr, func(s *web.Server) { s.Handler = handler })
}

func (a *App) addMutex(ctx context.Context, p parts) error {
	if !p.cfg.Mutex.Enabled() {
		return nil
	}
	front, err := mutexapi.New(mutexapi.Options{
		Settings: p.cfg.Mutex, Locks: p.locks, Guard: p.guard, Log: p.log.With("front", "mutex"), Registry: p.registry,
		Ready: a.db.Ready, ShutdownTimeout: p.cfg.HTTP.ShutdownTimeout,
	})
	if err != nil {
		return err
	}
	return a.listen(ctx, "mutex", front, front.URL)
}

// listenHTTP adds a front of HTTP at an address of its own.
func (a *App) listenHTTP(ctx context.Context, p parts, name, addr string, set func(*web.Server)) error {
	variable := strings.ToUpper(name) + "_ADDR"
	at, err := p.cfg.listenAt(variable, addr)
	if err != nil {
		return err
	}
	server := web.NewServer(at, p.log.With("front", name))
	server.Settings = variable
	set(server)
	return a.listen(ctx, name, server, server.URL)
}

// URL returns the address of a front: operators, locket, locktopus, sunbird or mutex. It is
// empty for a front that is off.
func (a *App) URL(front string) string { return a.urls[front] }

// Run serves until ctx is done, then stops in order: connections end, running requests
// finish, the lease ends, and the pool is closed. It returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	defer a.db.Close() // last, because running requests use it
	return a.service.Run(ctx)
}

// Close closes an instance that does not run.
func (a *App) Close(ctx context.Context) error {
	defer a.db.Close()
	return a.closeFronts(ctx)
}

// closeFronts closes the addresses of a service that does not start.
func (a *App) closeFronts(ctx context.Context) error {
	var errs []error
	for _, f := range a.service.Fronts {
		errs = append(errs, f.Drain(ctx))
	}
	return errors.Join(errs...)
}
