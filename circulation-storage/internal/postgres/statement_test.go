package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Each connection has plans and statements of all tenants, so it makes few plans and keeps few statements.
func TestStatements_OfManyTenants(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	db, err := postgres.Open(t.Context(), database.Settings{URL: pgtest.URL(t), MaxConns: 2},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	l.db = db
	l = l.on(db)
	type planned struct {
		Statement       string
		Custom, Generic int
	}
	// prepared lists what the only connection of a pool keeps for the tenant.
	prepared := func(pool *pgxpool.Pool) []planned {
		t.Helper()
		rows, _ := pool.Query(l.ctx(), `SELECT statement, custom_plans, generic_plans FROM pg_prepared_statements
			WHERE position($1 IN statement) > 0`, postgres.SchemaName(l.id))
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[planned])
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Run("what runs once a minute is not kept", func(t *testing.T) {
		store, history := postgres.NewRecordStore(db, func() {}), postgres.NewHistoryStore(db, true)
		for name, run := range map[string]func() error{
			"gauges":     func() error { _, err := db.ReadGauges(l.ctx()); return err },
			"over limit": func() error { _, err := db.CountOverLimit(l.ctx()); return err },
			"places":     func() error { _, _, _, err := history.CountUnknownPlaces(l.ctx(), time.Hour); return err },
			"locks":      func() error { _, err := l.locks.Sweep(l.ctx(), time.Hour, 10); return err },
			"history":    func() error { _, err := history.Sweep(l.ctx(), time.Hour, 10); return err },
			"repeats":    func() error { _, err := l.commits.SweepRepeats(l.ctx(), 10); return err },
			"loans":      func() error { _, err := store.SweepLoanHistory(l.ctx(), time.Hour, 10); return err },
			"requests":   func() error { _, err := l.commits.ExpireRequests(l.ctx(), 10); return err },
			"title jobs": func() error { return l.commits.RunTitleJob(l.ctx()) },
			"keys":       func() error { _, err := postgres.NewKeyLeaseStore(db).Sweep(l.ctx(), 10); return err },
			"releases": func() error {
				_, err := postgres.NewLockChangeStore(db).BlankReleases(l.ctx(), time.Hour, 10)
				return err
			},
			"events":    func() error { _, err := postgres.NewOutboxStore(db).Sweep(l.ctx(), time.Hour, 10); return err },
			"terminals": func() error { _, err := store.SweepTerminals(l.ctx(), 10); return err },
		} {
			if err := run(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if kept := prepared(db.Pool()); len(kept) > 0 {
			t.Errorf("the connection keeps %+v", kept)
		}
	})
	t.Run("look-ups are planned once", func(t *testing.T) {
		store := postgres.NewRecordStore(db, func() {})
		group := l.addNamed("usergroup")
		for range 3 {
			l.readFacts(schemas.CheckOutSubjects{UserBarcode: "P-1", ItemBarcode: "B-1"})
			if _, err := store.Get(l.ctx(), records.Usergroup, group.String()); err != nil {
				t.Fatal(err)
			}
		}
		looked := 0
		for _, p := range append(prepared(db.Pool()), prepared(db.UrgentPool())...) {
			if strings.Contains(p.Statement, "WITH patron") || strings.Contains(p.Statement, `"usergroup" WHERE id`) {
				looked++
				if p.Custom > 0 || p.Generic == 0 {
					t.Errorf("%d plans for the parameters and %d for all: %s", p.Custom, p.Generic, p.Statement)
				}
			}
		}
		if looked < 2 {
			t.Errorf("%d look-ups are prepared, want 2", looked)
		}
	})
}

func TestStatements_OfATenantThatIsNotInstalled(t *testing.T) {
	t.Parallel()
	h := newPast(t)
	h.id = pgtest.Tenant(t)
	outbox, l := postgres.NewOutboxStore(h.db), events.Lease{Holder: uuid.New()}
	for name, run := range map[string]func() error{
		"figures":   func() error { _, err := h.Figures(h.ctx(), schemas.FigureFilter{Minutes: 5}); return err },
		"waits":     func() error { _, err := h.Waits(h.ctx()); return err },
		"limit":     func() error { _, err := h.CheckLimit(h.ctx(), time.Now()); return err },
		"lease":     func() error { _, _, err := outbox.Lease(h.ctx(), l.Holder, time.Second); return err },
		"events":    func() error { _, err := outbox.Next(h.ctx(), 0, 1, 1, true); return err },
		"delete":    func() error { _, err := outbox.Delete(h.ctx(), l, []int64{1}); return err },
		"set aside": func() error { _, err := outbox.SetAside(h.ctx(), l, 1, "why"); return err },
		"give up":   func() error { return outbox.GiveUp(h.ctx(), l.Holder) },
	} {
		if err := run(); !fault.Is(err, fault.UnknownTenant) {
			t.Errorf("%s: got %v, want %s", name, err, fault.UnknownTenant)
		}
	}
}
