package httpapi

import (
	"slices"
	"time"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/web"
)

// Options configure New. All fields are required.
type Options struct {
	Served  Refuser // of tenants that are not served
	Tenants Tenants
	// TenantJobs installs tenants. InstallTimeout bounds a purge.
	TenantJobs     *tenantjob.Service
	InstallTimeout time.Duration

	Locks *lock.Service
	// LockTTL is the time to live of a lock whose request names none.
	LockTTL      time.Duration
	LockChanges  LockChanges
	LockSettings LockSettingsStore

	Commits      commit.Store
	KeyLeases    keylease.Store
	Rules        records.RulesStore
	Records      records.Store
	PatronBlocks PatronBlockStore
	Passwords    PasswordStore
	History      history.Store
	Terminals    TerminalStore
}

// New returns the front of the service's endpoints.
func New(o Options) (web.Front, error) {
	routes := slices.Concat(
		CheckoutLockRoutes(o.Locks, o.LockTTL),
		LockChangeRoutes(o.LockChanges),
		CommitRoutes(o.Commits, o.Locks),
		KeyLeaseRoutes(o.KeyLeases),
		LockSettingsRoutes(o.LockSettings),
		RulesRoutes(o.Rules),
		TenantRoutes(o.Tenants, o.TenantJobs, InstallPatience, o.InstallTimeout),
		RecordRoutes(o.Records),
		RequestQueueRoutes(o.Commits),
		SessionRoutes(o.Records),
		OperationRoutes(o.Records),
		PatronBlockRoutes(o.PatronBlocks),
		PasswordRoutes(o.Passwords),
		HistoryRoutes(o.History),
		TerminalRoutes(o.Terminals),
	)
	for i, r := range routes {
		if slices.Contains(ours, r.Method+" "+r.Path) {
			routes[i].Interface = ""
		}
	}
	endWaits := func() {
		o.Locks.Stop()
		o.TenantJobs.EndWaits()
	}
	return web.Front{Name: "endpoints", BeforeClose: endWaits, Routes: ForServedTenants(o.Served, routes)}, nil
}

// ours are the routes at paths of FOLIO that none of its module descriptors has.
var ours = []string{
	"DELETE /check-out-lock-storage",
	"POST /check-out-lock-storage/:lockId/forced-release",
	"PUT /automated-patron-blocks/:id",
	"PUT /check-in-storage/check-ins/:id",
	"DELETE /check-in-storage/check-ins/:id",
	"DELETE /check-in-storage/check-ins",
	"DELETE /loan-storage/loan-history",
	"DELETE /loan-types",
	"DELETE /location-units/institutions",
	"DELETE /location-units/campuses",
	"DELETE /location-units/libraries",
	"DELETE /locations",
	"DELETE /material-types",
	"POST /patron-block-conditions",
	"DELETE /patron-block-conditions/:id",
	"DELETE /service-points",
}

// ListRoutes returns the routes for documents, without a database. Their handlers do not work.
func ListRoutes() ([]web.Route, error) {
	front, err := New(Options{
		Locks: lock.NewService(nil, nil, nil), Commits: struct{ commit.Store }{}, KeyLeases: struct{ keylease.Store }{},
		Rules: struct{ records.RulesStore }{}, Records: struct{ records.Store }{}, LockSettings: struct{ LockSettingsStore }{},
		LockChanges: struct{ LockChanges }{}, PatronBlocks: struct{ PatronBlockStore }{}, Passwords: struct{ PasswordStore }{},
		History: struct{ history.Store }{}, Terminals: struct{ TerminalStore }{},
		Tenants: struct{ Tenants }{}, Served: struct{ Refuser }{},
	})
	return front.Routes, err
}
