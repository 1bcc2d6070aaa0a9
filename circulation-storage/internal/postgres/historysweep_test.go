package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
)

func TestHistory_IsSweptWhenOld(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for range 3 {
		p.add(refused("old", 0))
	}
	p.exec(`UPDATE {schema}.check_out_history SET ended_date = ended_date - interval '2 hours'`)
	p.add(refused("young", 3_500_000))
	for _, holder := range []string{"gone", "ahead", "there"} {
		if err := p.Add(p.ctx(), holder, schemas.CheckOutReport{Waiting: 1}); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(`UPDATE {schema}.check_out_waiting SET reported_date = reported_date - interval '25 hours' WHERE holder = ` +
		`'gone'`)
	p.exec(`UPDATE {schema}.check_out_waiting SET reported_date = reported_date + interval '25 hours' WHERE holder = ` +
		`'ahead'`)
	for _, want := range []int{2, 1, 0} {
		if n, err := p.Sweep(p.ctx(), time.Hour, 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if got := reasons(p.list(history.Filter{Limit: 10})); got != "young" {
		t.Errorf("left is %q, want young", got)
	}
	var left string
	statement := `SELECT string_agg(holder, ' ' ORDER BY holder) FROM ` + pgx.Identifier{
		postgres.SchemaName(p.id), "check_out_waiting",
	}.Sanitize()
	if err := p.db.Pool().QueryRow(p.ctx(), statement).Scan(&left); err != nil || left != "desk-1 there" {
		t.Errorf("reports left are %q, %v, want desk-1 and there", left, err)
	}
}

func TestHistory_DoesNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	add, err := postgres.HistoryAddStatement(p.ctx())
	if err != nil {
		t.Fatal(err)
	}
	sweep, err := postgres.HistorySweepStatement(p.ctx())
	if err != nil {
		t.Fatal(err)
	}
	p.exec(`INSERT INTO {schema}.check_out_waiting VALUES ('idle', 1, clock_timestamp())`)
	p.exec(`INSERT INTO {schema}.check_out_waiting VALUES ('gone', 1, clock_timestamp() - interval '2 days')`)
	const entries = `[{"id":"4f7ffd8c-8f0f-4c8e-a0ab-1f7bb0d1a6fa","outcome":"lent","tookMs":1}]`
	for _, step := range []struct {
		what, statement string
		args            []any
	}{
		{what: "an entry", statement: add, args: []any{entries, "other", 0, true, `[]`, ""}},
		{what: "who waits", statement: add, args: []any{`[]`, "desk", 1, true, `[]`, "1.0.0"}},
		{what: "without waiting callers", statement: add, args: []any{`[]`, "idle", 0, true, `[]`, ""}},
		{what: "an instance that is gone", statement: sweep, args: []any{time.Hour, 1}},
	} {
		tx, err := p.db.Pool().Begin(p.ctx())
		if err != nil {
			t.Fatal(err)
		}
		var setting string
		_, err = tx.Exec(p.ctx(), step.statement, step.args...)
		if err == nil {
			err = tx.QueryRow(p.ctx(), `SELECT current_setting('synchronous_commit')`).Scan(&setting)
		}
		if err != nil || setting != "off" {
			t.Errorf("%s: synchronous_commit is %s, %v, want off", step.what, setting, err)
		}
		if err := tx.Commit(p.ctx()); err != nil {
			t.Fatal(err)
		}
	}
}

// Through PgBouncer, pgx does not prepare statements, so every parameter needs its type in
// the statement.
func TestHistory_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.HistoryStore = postgres.NewHistoryStore(openWith(t, pooled), false)
	whole := refused("over", 1000)
	whole.UserBarcode, whole.ItemBarcode, whole.UserID = "U1", "I1", uuid.NewString()
	whole.WaitMs = new(int)
	if err := p.Add(p.ctx(), "desk-1", schemas.CheckOutReport{
		CheckOuts: []schemas.PastCheckOut{whole}, Waiting: 2,
	}); err != nil {
		t.Fatal(err)
	}
	page := p.list(history.Filter{
		UserBarcode: "u1", ItemBarcode: "i1", Outcome: "refused", From: time.Now().Add(-time.Hour),
		Until: time.Now().Add(time.Hour), Limit: 1,
	})
	if reasons(page) != "over" || page.CheckOuts[0].WaitMs == nil {
		t.Errorf("got %+v", page)
	}
	var f schemas.Figures
	whileBelieved(func() {
		if err := p.Add(p.ctx(), "desk-1", schemas.CheckOutReport{Waiting: 2}); err != nil {
			t.Fatal(err)
		}
		f = p.figures(5)
	})
	if f.Waiting != 2 || len(f.Minutes) != 5 || f.Total.Locked != 1 || len(f.Causes) != 1 || f.Causes[0].Reason != "over" {
		t.Errorf("got %+v", f)
	}
	if n, err := p.Sweep(p.ctx(), 0, 10); err != nil || n != 1 {
		t.Errorf("%d swept, %v, want 1", n, err)
	}
}
