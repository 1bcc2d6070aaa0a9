package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/admission"
	"checkoutlock/circulation/internal/anonymization"
	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/drill"
	"checkoutlock/circulation/internal/httpapi"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loans"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/reporter"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/desk"
	"checkoutlock/circulation/internal/staff"
	"checkoutlock/circulation/internal/storageclient"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/config"
	"checkoutlock/web"
	"checkoutlock/web/auth"
	"checkoutlock/web/texts"
)

// bodyLimit is the largest request body: circulation rules of thousands of lines.
const bodyLimit = 1 << 20

// Step is a point between two parts of a check-out.
type Step = checkout.Step

// The steps of a check-out, in order.
const (
	Validated = checkout.Validated
	Locked    = checkout.Locked
	Committed = checkout.Committed
	Released  = checkout.Released
)

// New connects the parts of the service and opens its addresses. So it returns every
// reason not to start. Storage need not run: the service is ready when storage is. cfg
// must be valid. The names of its fronts are endpoints, sip2 and staff. Each onStep is called at each step
// of each check-out, which continues when it returns. So a test can pause it between two steps.
func New(ctx context.Context, cfg Config, log *slog.Logger, onStep ...func(context.Context, Step)) (*web.Service, error) {
	service, err := connect(cfg, log, onStep...)
	if err != nil {
		return nil, err
	}
	if err := service.Listen(ctx); err != nil {
		return nil, err
	}
	return service, nil
}

// connect connects the parts of the service.
func connect(cfg Config, log *slog.Logger, onStep ...func(context.Context, Step)) (*web.Service, error) {
	storageURL, err := cfg.storageURL()
	if err != nil {
		return nil, err
	}
	readyTenant, err := cfg.readyTenant()
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	line := admission.New(admission.Options{Places: cfg.CheckOutConcurrency, Wait: cfg.CheckOutQueueWait, Entered: m.observeEntry})
	registerAdmission(registry, line)
	storage := storageclient.New(storageclient.Options{
		URL: storageURL, Instance: cfg.InstanceName, ReadyTenant: readyTenant,
		CheckOuts: cfg.CheckOutConcurrency, Observe: m.observeCall,
	})
	recorder := reporter.NewRecorder(storage, config.ReadBuild().Version, m.countDropped, log)
	observer := checkOuts{metrics: m, history: recorder, onStep: onStep}
	env := cfg.environment()
	store := settings.NewStore(storage, env, log, m.countFallback)
	registry.MustRegister(newFeatureGauge(store, log))
	lending := &checkout.Service{
		Admission: line, Library: storage, Locker: storage, Committer: storage,
		Settings: store, Observer: observer, Log: log, Now: time.Now,
	}
	placing := &requests.Service{Library: storage, Placer: storage, Keeper: storage, Log: log, Now: time.Now}
	locks := admin.NewService(storage, store, env, lending, log)
	guard := auth.NewGuard(cfg.Staff, staffPermissions(), log)
	registry.MustRegister(guard.Collector())
	checkIns := &checkin.Service{Library: storage, Returner: storage, Log: log}
	keyedCheckOuts := &keyed.Requests{Storage: storage, CheckOuts: lending, Ended: m.countKeyed, Log: log}
	renewals := &renewal.Service{Library: storage, Renewer: storage, Log: log, Now: time.Now}
	sessions := checkin.Sessions{Store: storage, Now: time.Now}
	service := &web.Service{
		Name: "circulation", Traces: cfg.Traces, HTTP: cfg.HTTP, Panics: web.NewPanics(registry, log), Stopped: storage.Close,
		Options: web.Options{
			Log: log, Registry: registry, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit, JSONFaults: true,
			BelievePermissions: guard.Mode() == auth.Gateway, Ready: storage.Ready,
		},
	}
	service.Add(httpapi.New(httpapi.Options{
		CheckOut: lending.CheckOut,
		Keyed:    keyedCheckOuts,
		CheckIn:  checkIns.CheckIn,
		Storage:  storage, RulesFor: library.Matching{Records: storage}.RulesFor, DryRun: lending.DryRun,
		EndSessions: sessions.End, EndExpiredSessions: sessions.EndExpired,
		Renewals: renewals,
		Requests: placing, Worklists: &worklist.Service{Library: storage},
		LoanChanges: &loans.Service{Library: storage, Changer: storage, Close: checkIns.Close, Log: log, Now: time.Now},
		Anonymize:   (&anonymization.Service{Loans: storage, Log: log, Now: time.Now}).Run,
		Admin:       locks, Guard: guard, Log: log,
	}))
	machines := &desk.Desk{
		Library: storage, Keyed: keyedCheckOuts, Committed: lending.Committed, CheckIn: checkIns.CheckIn, EndSessions: sessions.End,
		Renewals: renewals, Texts: texts.Delivered(), Log: log, Now: time.Now,
		Panicked: func(ctx context.Context, err error) { service.Panics.Note(ctx, "sip2", err) },
	}
	service.Workers = []web.Worker{{Name: "reporter", Run: func(ctx context.Context) {
		longer, cancel := machines.Outlive(ctx)
		defer cancel()
		recorder.Run(longer)
	}}}
	service.Add(sip2.New(sip2.Options{
		Settings: cfg.SIP2, Handlers: machines.Handlers(), Text: machines.Text, Terminals: storage, Activity: storage, ServicePoint: storage.FindServicePoint,
		Patience: cfg.MachinePatience, Ready: storage.Ready, Registry: registry, Panics: service.Panics, Log: log, Now: time.Now,
		ShutdownTimeout: cfg.HTTP.ShutdownTimeout,
	}))
	var drills staff.Drills // nil if the settings turn them off
	if cfg.Drill {
		drills = &drill.Service{
			Storage: storage, Settings: store, CheckOut: lending.CheckOut, Log: log,
			CheckIn: func(ctx context.Context, itemBarcode, servicePointID string) error {
				_, err := checkIns.CheckIn(ctx, checkin.Request{
					ItemBarcode: itemBarcode, ServicePointID: servicePointID, CheckInDate: library.Instant{Time: time.Now()}.Text(),
				})
				return err
			},
		}
	}
	service.Add(staff.New(staff.Options{Admin: locks, Drills: drills, Guard: guard, SignOuts: storage, Log: log}))
	service.Add(Module().NewFront(service))
	return service, nil
}

// staffPermissions are the permissions that handlers ask for: of overrides and of staff.
func staffPermissions() []string {
	return slices.Concat(checkout.OverridePermissions(), renewal.OverridePermissions(), admin.Permissions())
}
