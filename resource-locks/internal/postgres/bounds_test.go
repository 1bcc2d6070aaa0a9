package postgres_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

// freeze runs a statement in a transaction that stays open, as that of a frozen process, until thaw is
// called or the test ends.
func freeze(t *testing.T, db *postgres.DB, statement string, args ...any) (thaw func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), db.Pool().Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	t.Cleanup(thaw)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	return thaw
}

// patience is longer than the wait for a lock that a statement sets, and shorter than
// other bounds.
const patience = 4 * time.Second

// soonTries is how often wantSoon calls at most.
const soonTries = 10

// wantSoon fails the test if each call takes as long as the wait for a lock that a statement sets. A
// busy host may delay some of them.
func wantSoon(t *testing.T, what string, call func(try int)) {
	t.Helper()
	var took []time.Duration
	for try := range soonTries {
		began := time.Now()
		call(try)
		took = append(took, time.Since(began))
		if took[try] < 2*time.Second {
			return
		}
	}
	t.Errorf("%s took %s", what, took)
}

func TestLockStore_FrozenTransactionStopsNoRefusal(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	key := engine.Key{Namespace: "ns", Name: "d"}
	g, err := store.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	freeze(t, db, `SELECT FROM `+s.Name+`.lock FOR UPDATE`)
	wantSoon(t, "refusals", func(int) {
		refused, err := store.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "bob", TTL: time.Hour})
		if err != nil || refused.Outcome != engine.Held || refused.Lock.ID != g.Lock.ID {
			t.Errorf("another owner got %+v, %v, want held", refused, err)
		}
		if r, err := store.Release(t.Context(), key, "bob"); err != nil || r.Outcome != engine.Held {
			t.Errorf("release by another owner: %s, %v, want held", r.Outcome, err)
		}
	})
	began := time.Now()
	_, err = store.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour})
	if d := time.Since(began); !fault.Is(err, fault.Timeout) || d > patience {
		t.Errorf("a renewal behind the frozen one: %v after %s, want %q", err, d, fault.Timeout)
	}
}

// A plan that is made for an empty table stays in use while the table grows.
func TestSchema_EmptyTablesKeepIndexPlans(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	pool := s.Open("").Pool()
	for table, condition := range map[string]string{
		"lock":           `namespace = 'ns' AND name = 'd'`,
		"claim":          `id = '9ad09b01-7429-455f-9f64-e3897027db61'`,
		"claim_resource": `namespace = 'ns' AND key = '\x6100' AND write AND number < 7`,
	} {
		if _, err := pool.Exec(t.Context(), `VACUUM ANALYZE `+s.Name+`.`+table); err != nil {
			t.Fatal(err)
		}
		rows, _ := pool.Query(t.Context(), `EXPLAIN SELECT * FROM `+s.Name+`.`+table+` WHERE `+condition)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %v, %s", table, err, plan)
		}
	}
}

// TestClaimStore_EmptyTablesKeepIndexPlans reads the plans that connections keep.
func TestClaimStore_EmptyTablesKeepIndexPlans(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, table := range []string{"claim", "claim_resource"} {
		if _, err := tx.Exec(t.Context(), `ANALYZE `+s.Name+`.`+table); err != nil {
			t.Fatal(err)
		}
	}
	store := postgres.NewClaimStore(db)
	// PostgreSQL makes the first plans for the parameters, and no row is equal to NULL.
	const keepPlans = `SET LOCAL plan_cache_mode = force_generic_plan`
	for _, tt := range []struct {
		bounds     string
		args       []any
		statements map[string]int
	}{
		{bounds: postgres.LockNamespace, args: []any{"ns", true, "2000"}, statements: store.Statements()},
		{bounds: keepPlans + "; " + postgres.ClaimBounds, statements: store.Searches()},
		{bounds: keepPlans, statements: store.NewGrantsSearch()},
	} {
		nested, err := tx.Begin(t.Context()) // its end restores the settings
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nested.Exec(t.Context(), tt.bounds, tt.args...); err != nil {
			t.Fatal(err)
		}
		for statement, parameters := range tt.statements {
			checkIndexPlan(t, nested, statement, parameters)
		}
		if err := nested.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// checkIndexPlan fails if the statement's plan reads a whole table, or all entries of an index of
// claims. Instances are few.
func checkIndexPlan(t *testing.T, tx pgx.Tx, statement string, parameters int) {
	t.Helper()
	conditions := map[string]string{ // of each index, in the line below it
		"claim_pkey ": "id = ", "claim_waits_for_idx": "waits_for = ", "claim_ends_at_idx": "ends_at ",
		"claim_instance_id_idx": "instance = ", "claim_number_key": "number = ", "claim_is_new_idx": "instance = ",
		"claim_resource_pkey": "number = ", "claim_resource_key_idx": "key ",
	}
	if _, err := tx.Exec(t.Context(), `PREPARE planned AS `+statement, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	explain := `EXPLAIN EXECUTE planned`
	if parameters > 0 {
		explain += `(NULL` + strings.Repeat(`, NULL`, parameters-1) + `)`
	}
	rows, _ := tx.Query(t.Context(), explain, pgx.QueryExecModeSimpleProtocol)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		whole := strings.Contains(line, "Seq Scan") && !strings.Contains(line, "Seq Scan on instance")
		if whole || strings.Contains(line, "JIT") {
			t.Errorf("%s\n%s", strings.TrimSpace(line), statement)
		}
		for index, condition := range conditions {
			if strings.Contains(line, " using "+index) && !strings.Contains(lines[i+1], condition) {
				t.Errorf("%s has no condition on %q\n%s", strings.TrimSpace(line), condition, statement)
			}
		}
	}
	if _, err := tx.Exec(t.Context(), `DEALLOCATE planned`); err != nil {
		t.Fatal(err)
	}
}

func TestDB_InstallReadyAndDown(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).Open("")
	if err := db.Await(t.Context(), 0, nil); err != nil {
		t.Error(err)
	}
	for range 2 { // a repeat finds nothing to do
		if err := db.Migrations().Up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("installed: %v", err)
	}
	if err := db.Migrations().Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "resource-locks migrate") {
		t.Errorf("without migrations: %v, want the command that helps", err)
	}
	if err := db.Migrations().Repair(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("installed again: %v", err)
	}
}

func TestLockStore_SweepsOldReleases(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	force := func() {
		t.Helper()
		key := engine.Key{Namespace: "ns"}
		g, err := store.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.ForceRelease(t.Context(), key, g.Lock.ID, engine.Note{By: "eve", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
	}
	force()
	s.Advance(db, time.Hour)
	force()
	if n, err := store.SweepReleases(t.Context(), time.Minute); err != nil || n != 1 {
		t.Errorf("deleted %d, %v, want the old one", n, err)
	}
	if left, err := store.Releases(t.Context(), 10); err != nil || len(left) != 1 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// The index of paths has the namespace too, and text without repeats is not compressed.
func TestClaimStore_KeepsTheLongestPath(t *testing.T) {
	t.Parallel()
	store := postgres.NewClaimStore(schematest.New(t).Open(""))
	instance := uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	longText := func(characters int, first, last rune) string {
		text := make([]rune, characters)
		for i := range text {
			text[i] = first + random.Int32N(last-first)
		}
		return string(text)
	}
	deep := make([]string, engine.MaxSegments)
	for i := range deep {
		deep[i] = longText(engine.MaxPathBytes/engine.MaxSegments-1, '0', 'z')
	}
	wide := longText(engine.MaxNamespace, '𐀀', '𝄞')
	for _, q := range []engine.Claim{
		{Namespace: "ns", Resources: []engine.Resource{{Path: []string{longText(engine.MaxPathBytes-1, '0', 'z')}}}},
		{Namespace: wide, Resources: []engine.Resource{{Path: deep}}},
	} {
		q.ID, q.Instance = uuid.New(), instance
		if place, err := store.Enqueue(t.Context(), q); err != nil || !place.Held {
			t.Errorf("%.5s: %+v, %v", q.Namespace, place, err)
		}
	}
}

// TestDB_StatementsHaveTimeOuts lets triggers refuse each change without a time-out of the
// server for its statement.
func TestDB_StatementsHaveTimeOuts(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			db := s.Open(parameters)
			store, claims := postgres.NewLockStore(db), postgres.NewClaimStore(db)
			key := engine.Key{Namespace: "ns", Name: "d"}
			a := engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour}
			g, err := store.Acquire(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Pool().Exec(t.Context(), strings.ReplaceAll(`
				CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF current_setting('statement_timeout') NOT IN ('4s', '5s') THEN RAISE 'a statement without a time-out'; END IF;
					RETURN NULL; END $$;
				CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.lock
					FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note();
				CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.instance
					FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note();
				CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.claim
					FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note();
				CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.namespace
					FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note();
				CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.forced_release
					FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note()`,
				"{schema}", s.Name), pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatal(err)
			}
			instance, claim := uuid.New(), engine.Claim{ID: uuid.New(), Namespace: "ns", Resources: []engine.Resource{{}}}
			claim.Instance = instance
			other := a
			other.Name = "other"
			for _, step := range []struct {
				name string
				call func() error
			}{
				{"a grant", func() error { _, err := store.Acquire(t.Context(), other); return err }},
				{"a renewal", func() error { _, err := store.SendRenewals(t.Context(), []engine.Acquire{a}); return err }},
				{"a group", func() error { _, err := store.SendRenewals(t.Context(), []engine.Acquire{a, other}); return err }},
				{"a refresh", func() error {
					_, err := store.Refresh(t.Context(), engine.Refresh{Key: key, ID: g.Lock.ID, Owner: "ann", TTL: time.Hour})
					return err
				}},
				{"a request", func() error { _, err := store.Ask(t.Context(), key, engine.AskedFor{By: "bob"}); return err }},
				{"a forced release", func() error {
					_, err := store.ForceRelease(t.Context(), key, g.Lock.ID, engine.Note{By: "eve", Reason: "stuck"})
					return err
				}},
				{"a release", func() error { _, err := store.Release(t.Context(), other.Key, "ann"); return err }},
				{"a sweep", func() error { _, err := store.Sweep(t.Context(), time.Hour, 10); return err }},
				{"a sweep of releases", func() error { _, err := store.SweepReleases(t.Context(), time.Hour); return err }},
				{"a first lease", func() error { return claims.StartLease(t.Context(), instance, time.Hour) }},
				{"a lease", func() error { return claims.KeepLease(t.Context(), instance, time.Hour) }},
				{"a namespace", func() error { return claims.OpenNamespace(t.Context(), "new") }},
				{"a claim", func() error { _, err := claims.Enqueue(t.Context(), claim); return err }},
				{"a new grant", func() error { _, err := claims.NoteGrants(t.Context(), []uuid.UUID{claim.ID}); return err }},
				{"a withdrawal", func() error { _, err := claims.Withdraw(t.Context(), instance, "ns", claim.ID); return err }},
				{"ended claims", func() error { _, _, err := claims.Settle(t.Context(), instance); return err }},
				{"the end of a lease", func() error { return claims.EndLease(t.Context(), instance) }},
			} {
				if err := step.call(); err != nil {
					t.Errorf("%s: %v", step.name, err)
				}
			}
		})
	}
}
