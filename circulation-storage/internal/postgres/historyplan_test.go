package postgres_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/postgres"
)

func TestHistory_QueriesUseAnIndex(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.exec(`INSERT INTO {schema}.check_out_history (id, ended_date, outcome, user_barcode, item_barcode, service_point_id,
		took_ms, repeats)
	        SELECT gen_random_uuid(), clock_timestamp() - n * interval '1 min',
	        CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'lent' END,
	               'U' || n % 2000, 'I' || n % 5000, md5((n % 300)::text)::uuid, 20, 0
	          FROM generate_series(1, 40000) n`)
	p.exec(`ANALYZE {schema}.check_out_history`)
	yesterday := time.Now().Add(-24 * time.Hour)
	for name, tt := range map[string]struct {
		filter history.Filter
		index  string
	}{
		"the newest":       {history.Filter{}, "ended_date"},
		"a day":            {history.Filter{From: yesterday, Until: yesterday.Add(time.Hour)}, "ended_date"},
		"up to a day":      {history.Filter{Until: yesterday}, "ended_date"},
		"the last day":     {history.Filter{Since: 24 * time.Hour}, "ended_date"},
		"a patron":         {history.Filter{UserBarcode: "u7"}, "user_barcode"},
		"a patron's day":   {history.Filter{UserBarcode: "u7", From: yesterday}, "user_barcode"},
		"a patron's loans": {history.Filter{UserBarcode: "u7", Outcome: "lent"}, "user_barcode"},
		"an item":          {history.Filter{ItemBarcode: "i7"}, "item_barcode"},
		"a desk":           {history.Filter{ServicePointID: "8f14e45f-ceea-167a-5a36-dedd4bea2543"}, "service_point_id"},
		"a desk's day": {
			history.Filter{ServicePointID: "8f14e45f-ceea-167a-5a36-dedd4bea2543", From: yesterday}, "service_point_id",
		},
		"an unknown desk":   {history.Filter{ServicePointID: "00000000-0000-4000-8000-000000000000"}, "service_point_id"},
		"failures":          {history.Filter{Outcome: "failed"}, "outcome"},
		"what there is not": {history.Filter{Outcome: "unheard_of"}, "outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.filter.Limit = 50
			statement, args, err := postgres.HistoryStatement(p.ctx(), tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			wantPlan(t, p, "check_out_history_"+tt.index+"_idx", statement, args...)
		})
	}
	t.Run("figures", func(t *testing.T) {
		t.Parallel()
		statement, err := postgres.FiguresStatement(p.ctx())
		if err != nil {
			t.Fatal(err)
		}
		wantPlan(t, p, "check_out_history_ended_date_idx", statement, 60, 1, nil)
	})
	t.Run("sweeping", func(t *testing.T) {
		t.Parallel()
		statement, err := postgres.HistorySweepStatement(p.ctx())
		if err != nil {
			t.Fatal(err)
		}
		wantPlan(t, p, "check_out_history_ended_date_idx", statement, 30*24*time.Hour, 500)
	})
}

// wantPlan looks at how PostgreSQL would go about a statement: through the index,
// and never through the whole history.
func wantPlan(t *testing.T, p past, index, statement string, args ...any) {
	t.Helper()
	plan, err := explainOn(p.ctx(), p.db.Pool(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan, "Seq Scan on check_out_history") || !strings.Contains(plan, index) {
		t.Errorf("the plan does not use %s alone:\n%s", index, plan)
	}
}
