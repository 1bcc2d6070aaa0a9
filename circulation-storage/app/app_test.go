package app

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/config"
	"checkoutlock/schemas/okapi"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestMigrate_LeavesOutATenantThatMoved(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	schema := postgres.SchemaName(id)
	rename := func(ctx context.Context, from, to string) {
		t.Helper()
		if _, err := db.Pool().Exec(ctx, "ALTER SCHEMA "+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	ids := []okapi.Tenant{id}
	cfg := DefaultConfig()
	if err := config.Load(&cfg, []string{"DATABASE_URL=" + pgtest.URL(t), "TENANTS=" + id.String()}); err != nil {
		t.Fatal(err)
	}
	rename(t.Context(), schema, schema+"_moved")
	t.Cleanup(func() { rename(context.Background(), schema+"_moved", schema) })
	var log strings.Builder
	if err := Migrate(t.Context(), cfg, true, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	s, err := db.Schema(okapi.WithTenant(t.Context(), id))
	if err != nil || s.Installed || !strings.Contains(log.String(), "moved to another database") {
		t.Errorf("it has %+v (%v), want none; the log is %s", s, err, &log)
	}
	if err := db.Ready(t.Context(), ids); err != nil {
		t.Errorf("with a tenant that moved: %v, want it ready", err)
	}
	if err := db.Ready(t.Context(), append(ids, pgtest.Tenant(t))); err == nil {
		t.Error("it is ready with a tenant that is not installed")
	}
}

func TestListing_PrintsOneLineForEachRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Listing{Out: &out}.print(table{
		columns: []string{"LOCK", "HOLDER"}, rows: [][]string{{"1", "a\nb\tc\x1b[2Jd\u202e"}, {"2", " \u200b"}},
	})
	if want := "LOCK  HOLDER\n1     a b c[2Jd\n2     -\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", &out, err, want)
	}
}

func TestSweptRows(t *testing.T) {
	t.Parallel()
	cfg := Config{HistoryRetention: 48 * time.Hour, LoanHistoryRetention: 72 * time.Hour}
	cfg.Events.Retention = 72 * time.Hour
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	s := newStores(cfg, db, m, slog.New(slog.NewTextHandler(t.Output(), nil)))
	tests := map[string]struct {
		insert  string // of two rows: too young and old enough
		counter string // "" if the rows are not counted
	}{
		"outdated locks": {`INSERT INTO check_out_lock (user_id, creation_date, ttl_ms)
			SELECT gen_random_uuid(), now() - age, 1000 FROM unnest(ARRAY['9 minutes',
			'11 minutes']::interval[]) age`, "checkout_lock_swept_total"},
		"forgotten idempotency keys": {`INSERT INTO check_out_request (key, body_hash, claim_id, claimed_date, lease_ms)
			SELECT age, '', gen_random_uuid(), now() - age, 1000 FROM unnest(ARRAY['23 hours',
			'25 hours']::interval[]) age`, "idempotency_keys_swept_total"},
		"check-ins and changes a day old": {`INSERT INTO check_in (id, item_id, item, created_date)
			SELECT gen_random_uuid(), gen_random_uuid(), '{}', now() - age FROM unnest(ARRAY['23 hours',
			'25 hours']::interval[]) age`, ""},
		"expired requests": {`INSERT INTO request (id, jsonb) SELECT id, jsonb_build_object('id', id, 'instanceId', id,
			'status', 'Open - Not yet filled',
			'requestLevel', 'Title', 'requestExpirationDate', to_char((now() + age) AT TIME ZONE 'UTC',
			'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
			FROM (SELECT gen_random_uuid() AS id, age FROM unnest(ARRAY['1 hour', '-1 hour']::interval[]) age) r`, ""},
		"past check-outs": {`INSERT INTO check_out_history (id, ended_date, outcome, took_ms, repeats)
			SELECT gen_random_uuid(), now() - age, 'lent', 1, 0 FROM unnest(ARRAY['47 hours',
			'49 hours']::interval[]) age`, "checkout_history_swept_total"},
		"old notes of self-check machines": {`INSERT INTO self_check_note (id, noted_date, instance, login, kind)
			SELECT gen_random_uuid(), now() - age, 'one', 'desk-1', 'cancelled' FROM unnest(ARRAY['29 days',
			'31 days']::interval[]) age`, ""},
		"undelivered events": {
			`INSERT INTO outbox (event_type, creation_date)
			SELECT 'X', now() - age FROM unnest(ARRAY['71 hours', '73 hours']::interval[]) age ORDER BY age DESC`,
			"events_swept_total",
		},
		"history of closed loans": {`INSERT INTO loan_history (id, jsonb)
			SELECT gen_random_uuid(), jsonb_build_object('createdDate', to_char((now() - age) AT TIME ZONE 'UTC',
			'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'),
			'loan', jsonb_build_object('id', gen_random_uuid())) FROM unnest(ARRAY['71 hours',
			'73 hours']::interval[]) age`, ""},
		"patrons of forced releases": {`INSERT INTO check_out_lock_change (changed_date, kind, lock_id, lock_user_id)
			SELECT now() - age, 'release', gen_random_uuid(), gen_random_uuid() FROM unnest(ARRAY['47 hours',
			'49 hours']::interval[]) age`, ""},
	}
	for _, rows := range sweptRows(cfg, s, m) {
		tt, known := tests[rows.Name]
		if !known {
			t.Errorf("%q has no test", rows.Name)
			continue
		}
		delete(tests, rows.Name)
		insert := strings.Replace(tt.insert, "INTO ", "INTO "+postgres.SchemaName(id)+".", 1)
		if _, err := db.Pool().Exec(ctx, insert); err != nil {
			t.Fatalf("%s: %v", rows.Name, err)
		}
		if n, err := rows.Sweep(ctx, 10); err != nil || n != 1 {
			t.Errorf("%s: deleted %d, %v, want 1", rows.Name, n, err)
		}
		if (rows.Swept == nil) != (tt.counter == "") {
			t.Errorf("%s: counted: %t", rows.Name, rows.Swept != nil)
		}
		if rows.Swept == nil {
			continue
		}
		rows.Swept(3)
		if got := counterValue(t, reg, tt.counter); got != 3 {
			t.Errorf("%s: %s is %g, want 3", rows.Name, tt.counter, got)
		}
	}
	if got := counterValue(t, reg, "requests_expired_total"); got != 1 {
		t.Errorf("requests_expired_total is %g, want 1", got)
	}
	for name := range tests {
		t.Errorf("%s are not swept", name)
	}
	cfg.LoanHistoryRetention = 0
	for _, rows := range sweptRows(cfg, s, m) {
		if rows.Name == "history of closed loans" {
			t.Errorf("%s is swept without a setting", rows.Name)
		}
	}
}

func TestMetrics_HaveEachKindOfCommitFromTheStart(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	m.Ended(commit.LoanRenewal, commit.LoanChanged, time.Second)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, counted := 0, map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() != "checkout_commits_total" {
				continue
			}
			series++
			if n := metric.GetCounter().GetValue(); n > 0 {
				counted[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = n
			}
		}
	}
	if want := len(commit.Kinds()) * len(commit.Outcomes()); series != want {
		t.Errorf("got %d series, want %d", series, want)
	}
	if want := map[string]float64{"renewal loan_changed": 1}; !maps.Equal(counted, want) {
		t.Errorf("got %v, want %v", counted, want)
	}
}

func counterValue(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}
