package app

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/okapi"
)

// hasTenant reports whether a gauge has a value of the tenant.
func hasTenant(t *testing.T, reg *prometheus.Registry, gauge string, id okapi.Tenant) bool {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() == gauge && metric.GetLabel()[0].GetValue() == id.String() {
				return true
			}
		}
	}
	return false
}

func TestGauges_OfAPurgedTenantEnd(t *testing.T) {
	t.Parallel()
	db, kept := pgtest.New(t)
	cfg := Config{LockSweepInterval: 10 * time.Millisecond, HistoryRetention: time.Hour}
	cfg.Events.Retention = time.Hour
	service, err := newService(cfg, slog.New(slog.DiscardHandler), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	for gauge, worker := range map[string]string{
		"checkout_patrons_over_limit":     "sweep of patrons over their limit",
		"checkout_unknown_service_points": "sweep of unknown service points",
	} {
		t.Run(gauge, func(t *testing.T) {
			t.Parallel()
			gone := pgtest.Tenant(t)
			if err := db.Install(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			for _, w := range service.Workers {
				if w.Name == worker {
					var running sync.WaitGroup
					ctx, cancel := context.WithCancel(t.Context())
					running.Go(func() { w.Run(ctx) })
					t.Cleanup(func() {
						cancel()
						running.Wait()
					})
				}
			}
			deadline := time.After(time.Minute)
			until := func(id okapi.Tenant, want bool) {
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for hasTenant(t, service.Options.Registry, gauge, id) != want {
					select {
					case <-tick.C:
					case <-deadline:
						t.Fatalf("the gauge of tenant %s is there: %t, want %t", id, !want, want)
					}
				}
			}
			until(kept, true)
			until(gone, true)
			if err := db.Purge(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			until(gone, false)
			if !hasTenant(t, service.Options.Registry, gauge, kept) {
				t.Error("the gauge of the other tenant has ended")
			}
		})
	}
}

func TestGauges_OfOtherTenantsBesideOneThatIsRestored(t *testing.T) {
	t.Parallel()
	db, locked := pgtest.New(t)
	_, other := pgtest.New(t)
	lockTables(t, db, locked)
	// Those of other tests may be locked too, and all are read within 2 s.
	tenants := func(context.Context) ([]okapi.Tenant, error) { return []okapi.Tenant{locked, other}, nil }
	reg := prometheus.NewRegistry()
	reg.MustRegister(newGauges(db, tenants, slog.New(slog.DiscardHandler)))
	if found, err := reg.Gather(); err != nil || len(found) != 3 {
		t.Errorf("got %d gauges, %v, want 3", len(found), err)
	}
}
