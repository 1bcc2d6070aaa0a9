package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/circulation-storage/internal/sample"
	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// bodyLimit is the largest request body in bytes. FOLIO's largest records are instances of
// some ten kilobytes.
const bodyLimit = 1 << 20

// tenantInterval is how often the versions of the tenants' schemas are read.
const tenantInterval = 30 * time.Second

// New opens the connection pool, installs the configured tenants and opens the addresses.
// So it returns every reason not to start. The name of the only front is endpoints.
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
	ids, err := parseTenants(cfg.Tenants...)
	if err != nil {
		return nil, err
	}
	err = awaitEach(ctx, cfg, db, ids, func(id okapi.Tenant) error {
		_, err := install(ctx, db, id, log)
		return err
	})
	if err != nil {
		return nil, err
	}
	service, err := newService(cfg, log, db, ids)
	if err != nil {
		return nil, err
	}
	if err := service.Listen(ctx); err != nil {
		return nil, err
	}
	return service, nil
}

// newService lists what the process runs: the workers, and the fronts. tenants are those of
// TENANTS.
func newService(cfg Config, log *slog.Logger, db *postgres.DB, tenants []okapi.Tenant) (*web.Service, error) {
	to, closeSink, err := cfg.Events.Open()
	if err != nil {
		return nil, err
	}
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	watch := readiness.NewWatch(db, tenantInterval, m.setTenants, log)
	s := newStores(cfg, db, m, log)
	reg.MustRegister(db.Collector(), newGauges(db, db.Tenants, log))
	service := &web.Service{
		Name: "circulation-storage", Traces: cfg.Traces, HTTP: cfg.HTTP, Panics: web.NewPanics(reg, log),
		Stopped: func() { // no worker runs any more
			closeSink()
			db.Close()
		},
		Options: web.Options{
			Log: log, Registry: reg, RequestTimeout: cfg.HTTP.RequestTimeout, BodyLimit: bodyLimit,
			CountRefusal: db.CountRefusal,
			// Requests of a tenant outside TENANTS are refused one by one.
			Ready: func(ctx context.Context) error { return db.Ready(ctx, tenants) },
		},
		Workers: []web.Worker{{Name: "readiness", Run: watch.Run}, {Name: "tenant jobs", Run: s.tenantJobs.Run}},
	}
	sweepTenants := func(rows sweep.Rows, tenants func(context.Context) ([]okapi.Tenant, error)) {
		service.Workers = append(service.Workers,
			web.Worker{Name: "sweep of " + rows.Name, Run: sweep.New(rows, tenants, cfg.LockSweepInterval, log).Run})
	}
	for _, rows := range sweptRows(cfg, s, m) {
		sweepTenants(rows, db.Tenants)
	}
	sweepTenants(sweep.Rows{Name: "patrons over their limit", Sweep: func(ctx context.Context, _ int) (int, error) {
		return 0, m.countOverLimit(ctx, db) // it leaves all rows
	}}, forgetPurged(m.overLimit, db.Tenants))
	sweepTenants(sweep.Rows{Name: "unknown service points", Sweep: func(ctx context.Context, _ int) (int, error) {
		return 0, m.countUnknownPlaces(ctx, s.history, cfg.LockSweepInterval, log)
	}}, forgetPurged(m.unknownPlaces, db.Tenants))
	if to != nil {
		deliverer := events.New(s.outbox, to, cfg.Events.Names(), db.Tenants, m, log)
		service.Workers = append(service.Workers, web.Worker{Name: "events", Run: deliverer.Run})
	}
	service.Add(httpapi.New(endpoints(cfg, db, watch, s)))
	service.Add(Module().NewFront(service))
	return service, nil
}

// stores are the stores of all tenants in one database, and the locks on them.
type stores struct {
	locks       *postgres.LockStore
	lockService *lock.Service
	lockChanges *postgres.LockChangeStore
	settings    *postgres.LockSettingsStore
	commits     *postgres.CommitStore
	keyLeases   *postgres.KeyLeaseStore
	records     *postgres.RecordStore
	history     *postgres.HistoryStore
	tenantJobs  *tenantjob.Service
	outbox      *postgres.OutboxStore
}

func newStores(cfg Config, db *postgres.DB, m *metrics, log *slog.Logger) stores {
	recordStore := postgres.NewRecordStore(db, m.unfenced.Inc)
	load := func(ctx context.Context, a tenantjob.Attributes) error {
		return sample.Load(ctx, recordStore, a.Wants("loadReference"), a.Wants("loadSample"))
	}
	locks := postgres.NewLockStore(db)
	service := lock.NewService(locks, m, log)
	return stores{
		locks:       locks,
		lockService: service,
		lockChanges: postgres.NewLockChangeStore(db),
		settings:    postgres.NewLockSettingsStore(db),
		commits:     postgres.NewCommitStore(db, commitEnds{m, service}),
		keyLeases:   postgres.NewKeyLeaseStore(db),
		records:     recordStore,
		history:     postgres.NewHistoryStore(db, cfg.Events.PubSub != ""),
		outbox:      postgres.NewOutboxStore(db),
		tenantJobs:  tenantjob.New(postgres.NewTenantJobStore(db), load, cfg.InstallTimeout, log),
	}
}

// endpoints are the options of the front of HTTP.
func endpoints(cfg Config, db *postgres.DB, watch *readiness.Watch, s stores) httpapi.Options {
	return httpapi.Options{
		Served: watch, Tenants: db, TenantJobs: s.tenantJobs, InstallTimeout: cfg.InstallTimeout,
		Locks: s.lockService, LockTTL: time.Duration(cfg.LockTTLMs) * time.Millisecond, LockChanges: s.lockChanges, LockSettings: s.settings,
		Commits: s.commits, KeyLeases: s.keyLeases, Rules: s.records, Records: s.records, PatronBlocks: s.records,
		Passwords: s.records, History: s.history, Terminals: s.records,
	}
}

// outdatedLocksKept is how long outdated locks stay, so that operators can see why a
// check-out failed. An outdated lock blocks no caller.
const outdatedLocksKept = 10 * time.Minute

// sweptRows lists all rows that are deleted, or closed, when they are old.
func sweptRows(cfg Config, s stores, m *metrics) []sweep.Rows {
	rows := []sweep.Rows{
		{Name: "outdated locks", Sweep: sweep.OlderThan(outdatedLocksKept, s.locks.Sweep), Swept: m.swept.Add},
		{Name: "forgotten idempotency keys", Sweep: s.keyLeases.Sweep, Swept: m.forgotten.Add},
		{Name: "expired requests", Sweep: s.commits.ExpireRequests},
		{Name: "check-ins and changes a day old", Sweep: s.commits.SweepRepeats},
		{Name: "past check-outs", Sweep: sweep.OlderThan(cfg.HistoryRetention, s.history.Sweep), Swept: m.aged.Add},
		{Name: "old notes of self-check machines", Sweep: s.records.SweepTerminals},
		{Name: "undelivered events", Sweep: sweep.OlderThan(cfg.Events.Retention, s.outbox.Sweep), Swept: m.undelivered.Add},
		// Who released a lock, and why, stays.
		{Name: "patrons of forced releases", Sweep: sweep.OlderThan(cfg.HistoryRetention, s.lockChanges.BlankReleases)},
	}
	if cfg.LoanHistoryRetention == 0 {
		return rows
	}
	return append(rows, sweep.Rows{
		Name:  "history of closed loans",
		Sweep: sweep.OlderThan(cfg.LoanHistoryRetention, s.records.SweepLoanHistory),
	})
}
