package app

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// A restore locks all tables of a tenant for minutes. What runs each minute keeps no connection that long,
// because calls of other tenants need it.
func TestSweeps_DoNotWaitForATenantThatIsRestored(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	cfg := Config{HistoryRetention: time.Hour, LoanHistoryRetention: time.Hour}
	cfg.Events.Retention = time.Hour
	m := newMetrics(prometheus.NewRegistry())
	s := newStores(cfg, db, m, slog.New(slog.DiscardHandler))
	rows := append(sweptRows(cfg, s, m),
		sweep.Rows{Name: "patrons over their limit", Sweep: func(ctx context.Context, _ int) (int, error) {
			return 0, m.countOverLimit(ctx, db)
		}},
		sweep.Rows{Name: "unknown service points", Sweep: func(ctx context.Context, _ int) (int, error) {
			return 0, m.countUnknownPlaces(ctx, s.history, time.Minute, slog.New(slog.DiscardHandler))
		}},
	)
	ctx, cancel := context.WithTimeout(okapi.WithTenant(t.Context(), id), 20*time.Second)
	defer cancel()
	lockTables(t, db, id)
	var all sync.WaitGroup // subtests would wait, with the lock, for the end of tests that wait for it
	for _, r := range rows {
		all.Go(func() {
			if _, err := r.Sweep(ctx, 10); !fault.Is(err, fault.InUse) {
				t.Errorf("%s: got %v, want that the tenant is in use", r.Name, err)
			}
		})
	}
	all.Wait()
}

// lockTables locks all tables of a tenant until the test has ended.
func lockTables(t *testing.T, db *postgres.DB, id okapi.Tenant) {
	t.Helper()
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), "DROP SCHEMA "+postgres.SchemaName(id)+" CASCADE"); err != nil {
		t.Fatal(err)
	}
}
