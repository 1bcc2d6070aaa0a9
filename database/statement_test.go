package database_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
)

const settingsSQL = `SELECT concat_ws(' ', current_setting('transaction_isolation'),
	current_setting('statement_timeout'),
	current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
	current_setting('plan_cache_mode'),
	current_setting('enable_seqscan'), current_setting('enable_bitmapscan'), current_setting('jit'),
	current_setting('synchronous_commit'))`

func TestBounds_HoldInTheirTransactionAlone(t *testing.T) {
	t.Parallel()
	db := openWith(t, "synchronous_commit", "on", 9*time.Second)
	settings := func(on database.Querier, bounds string) string {
		t.Helper()
		var got string
		if err := database.ScanRow(t.Context(), on, bounds, settingsSQL, nil, []any{&got}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	const session = "read committed 10s 0 1min auto on on on on"
	for _, tt := range []struct {
		name   string
		bounds database.Bounds
		want   string
	}{
		{
			name: "time-outs", want: "read committed 2s 50ms 3s auto on on on on",
			bounds: database.Bounds{Statement: 2 * time.Second, Lock: 50 * time.Millisecond, Idle: 3 * time.Second},
		},
		{
			name: "plans", want: "read committed 2s 0 1min force_generic_plan off off off on",
			bounds: database.Bounds{Statement: 2 * time.Second, PlansOnce: true, OnlyIndexes: true},
		},
		{
			name: "durability", want: "read committed 2s 0 1min auto on on on off",
			bounds: database.Bounds{Statement: 2 * time.Second, NotDurable: true},
		},
	} {
		if got := settings(db.Urgent, tt.bounds.Batched()); got != tt.want {
			t.Errorf("%s in a batch: %s, want %s", tt.name, got, tt.want)
		}
		err := db.InTx(t.Context(), db.Urgent, tt.bounds, func(tx pgx.Tx) error {
			if got := settings(tx, ""); got != tt.want {
				t.Errorf("%s in a transaction: %s, want %s", tt.name, got, tt.want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		marked := "WITH set AS MATERIALIZED (SELECT " + database.BoundsMark + " $1::text) SELECT FROM set"
		if got := readInBatch(t, db, tt.bounds, marked); got != tt.want {
			t.Errorf("behind a statement with the mark: got %s, want %s", got, tt.want)
		}
		if got := readInBatch(t, db, tt.bounds); got != tt.want {
			t.Errorf("%s in two batches: %s, want %s", tt.name, got, tt.want)
		}
		if got := settings(db.Urgent, ""); got != session {
			t.Errorf("after %s: %s, want %s", tt.name, got, session)
		}
	}
}

func TestNameSchemaOn(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "names", 0)
	conn, err := db.Urgent.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for range 2 { // the second time from what the connection keeps
		for i := range 600 { // more than it keeps
			for _, on := range []database.Querier{conn, db.Urgent} {
				got := database.NameSchemaOn(on, fmt.Sprintf(`a"%d`, i), `{schema}.b {schema}`)
				if want := fmt.Sprintf(`"a""%d".b "a""%[1]d"`, i); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		}
	}
	a, b := database.NameSchemaOn(conn, "a", `{schema}.c`), database.NameSchemaOn(conn, "b", `{schema}.c`)
	if a != `"a".c` || b != `"b".c` {
		t.Errorf("got %s and %s, want a schema each", a, b)
	}
}

func TestDB_ReadsJSONAsItIs(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "json", 0)
	var record, list, null, none json.RawMessage
	var numbers []int
	err := db.Urgent.QueryRow(t.Context(),
		`SELECT '{"b": 1, "a": "<>"}'::jsonb, '[1,  2]'::json, 'null'::jsonb, NULL::jsonb, '[1, 2]'::jsonb`,
	).Scan(&record, &list, &null, &none, &numbers)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(record), string(list), string(null), fmt.Sprint(none == nil, numbers)}
	want := []string{`{"a": "<>", "b": 1}`, `[1,  2]`, `null`, `true [1 2]`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	kept := string(record)
	err = db.Urgent.QueryRow(t.Context(), `SELECT '{"another": "text"}'::jsonb`).Scan(&list)
	if err != nil || string(record) != kept {
		t.Errorf("after another statement (%v) it is %s, want %s", err, record, kept)
	}
}

func TestDB_CheckServerReadsTheStatesOfSchemas(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "states", 0)
	name := "states_" + strings.ToLower(rand.Text())
	current, empty, broken := name+"_current", name+"_empty", name+"_broken"
	for _, statement := range []string{
		`CREATE SCHEMA ` + current, `CREATE TABLE ` + current +
			`.schema_migrations AS SELECT 7::bigint AS version, true AS dirty`,
		`CREATE SCHEMA ` + empty, `CREATE TABLE ` + empty + `.schema_migrations (version bigint, dirty boolean)`,
		`CREATE SCHEMA ` + broken, `CREATE VIEW ` + broken + `.schema_migrations AS SELECT 1/0 AS version, true AS dirty`,
	} {
		if _, err := db.Urgent.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, schema := range []string{current, empty, broken} {
			if _, err := db.Urgent.Exec(context.WithoutCancel(t.Context()), `DROP SCHEMA `+schema+` CASCADE`); err != nil {
				t.Error(err)
			}
		}
	})
	for _, tt := range []struct {
		name    string
		schemas []string
		want    string
	}{
		{name: "all have a table of versions", schemas: []string{empty, current}, want: "[{true 0 false} {true 7 true}]"},
		{
			name: "one has none", schemas: []string{"nowhere", current, empty},
			want: "[{false 0 false} {true 7 true} {true 0 false}]",
		},
		{name: "none is asked for", want: "[]"},
	} {
		states, err := db.CheckServer(t.Context(), tt.schemas...)
		if got := fmt.Sprint(states); err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
		}
		states, err = db.ReadSchemas(t.Context(), tt.schemas...)
		if got := fmt.Sprint(states); err != nil || got != tt.want {
			t.Errorf("%s: read %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := db.ReadSchemas(t.Context(), "nowhere", broken); err == nil {
		t.Error("a table of versions that cannot be read is no error")
	}
}
