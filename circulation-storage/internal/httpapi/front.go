package httpapi

import (
	"slices"
	"time"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/web"
)

// Options configure New. All fields are required.
type Options struct {
	Served  Refuser // of tenants that are not served
	Tenants Tenants
	// TenantJobs installs tenants. InstallTimeout bounds a purge.
	TenantJobs     TenantJobs
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
	History      history.Store
}

// New returns the front of the service's endpoints.
func New(o Options) (web.Front, error) {
	return web.Front{Name: "endpoints", BeforeClose: o.Locks.Stop, Routes: ForServedTenants(o.Served, slices.Concat(
		CheckoutLockRoutes(o.Locks, o.LockTTL),
		LockChangeRoutes(o.LockChanges),
		CommitRoutes(o.Commits),
		KeyLeaseRoutes(o.KeyLeases),
		LockSettingsRoutes(o.LockSettings),
		RulesRoutes(o.Rules),
		TenantRoutes(o.Tenants, o.TenantJobs, InstallPatience, o.InstallTimeout),
		RecordRoutes(o.Records),
		RequestBatchRoutes(o.Records),
		RequestQueueRoutes(o.Commits),
		SessionRoutes(o.Records),
		OperationRoutes(o.Records),
		PatronBlockRoutes(o.PatronBlocks),
		HistoryRoutes(o.History),
	))}, nil
}
