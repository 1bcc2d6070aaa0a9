package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/auth"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/httpapi"
	"checkoutlock/circulation/internal/idempotency"
	"checkoutlock/circulation/internal/oversight"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/circulation/internal/storageclient"
	"checkoutlock/config/edge"
)

// bodyLimit is the largest request body: circulation rules of thousands of lines.
const bodyLimit = 1 << 20

// App is the service, listening but not yet serving.
type App struct {
	server  *edge.Server
	handler http.Handler
	storage *storageclient.Client
}

// Option changes New.
type Option func(*options)

type options struct{ observers observers }

// WithObserver adds an observer of check-outs; it is told after the metrics are.
// A check-out goes on when its observers return, so one that waits makes it
// pause between two steps.
func WithObserver(o Observer) Option {
	return func(opts *options) { opts.observers = append(opts.observers, o) }
}

// New opens the listener and wires the service, so that every reason not to
// start shows up here. Storage need not be up: the service is ready when storage
// is. cfg must be valid.
func New(ctx context.Context, cfg Config, log *slog.Logger, opts ...Option) (*App, error) {
	storageURL, err := cfg.storageURL()
	if err != nil {
		return nil, err
	}
	server, err := edge.Listen(ctx, cfg.HTTP, log)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	o := options{observers: observers{m}}
	for _, opt := range opts {
		opt(&o)
	}
	storage := storageclient.New(storageclient.Options{URL: storageURL, Instance: cfg.InstanceName, Observe: m.storageCall})
	env := cfg.environment()
	store := settings.NewStore(storage, env, log, m.settingsFallback)
	checkOuts := &checkout.Service{
		Library: storage, Locker: storage, Committer: storage,
		Settings: store, Observer: o.observers, Log: log, Now: time.Now,
	}
	routes := httpapi.Routes(httpapi.Deps{
		CheckOuts: checkOuts,
		Requests:  &idempotency.Requests{Storage: storage, Ended: m.keyed, Log: log},
		CheckIns:  &checkout.Returns{Library: storage, Returner: storage, Log: log},
		Loans:     storage, Rules: storage, Matching: checkOuts, DryRuns: checkOuts, Sessions: checkout.Sessions{Store: storage},
		Renewals: &checkout.Renewals{Service: checkOuts, Renewer: storage},
		Placing:  &requests.Service{Library: storage, Placer: storage}, Queues: storage,
		Oversight: oversight.NewService(storage, store, env, checkOuts, log),
		Guard:     auth.NewGuard(cfg.StaffAuth, cfg.StaffPassword, log), Log: log,
	})
	handler := edge.New(edge.Options{
		Log: log, Registry: registry, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit, JSONFaults: true,
		Ready: func(ctx context.Context) error {
			if err := server.Draining(); err != nil {
				return err
			}
			return storage.Ready(ctx)
		},
	}, routes)
	return &App{server: server, handler: handler, storage: storage}, nil
}

// URL is the address at which the service is reached.
func (a *App) URL() string { return a.server.URL() }

// Run serves until ctx is done, then stops in order: running check-outs end and
// release their locks. It returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	defer a.storage.Close()
	return a.server.Run(ctx, a.handler, nil)
}

// Close gives up the port of a service that never ran.
func (a *App) Close() error { return a.server.Close() }
