package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/config/command"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// runCommand returns the output and the status of a command at the server of the tests.
func runCommand(t *testing.T, database string, args ...string) (out string, status int) {
	t.Helper()
	var stdout strings.Builder
	err := program.Run(t.Context(), command.Process{
		Args: args, Environ: []string{"DATABASE_URL=" + database, "DATABASE_WAIT=0"}, Stdout: &stdout, Stderr: io.Discard,
	})
	if other, ok := errors.AsType[*command.StatusError](err); ok {
		return stdout.String(), other.Status
	}
	if err != nil {
		t.Logf("%v: %v", args, err)
		return stdout.String(), 1
	}
	return stdout.String(), 0
}

// readRows runs a listing as JSON.
func readRows(t *testing.T, args ...string) []map[string]string {
	t.Helper()
	out, status := runCommand(t, pgtest.URL(t), append(args, "-json")...)
	var rows []map[string]string
	if err := json.Unmarshal([]byte(out), &rows); err != nil || status != 0 {
		t.Fatalf("%v: status %d, %q, %v", args, status, out, err)
	}
	return rows
}

func TestListings_ShowWhatIsStored(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	patron, other := uuid.New(), uuid.New()
	if _, err := db.Pool().Exec(ctx, "INSERT INTO "+postgres.SchemaName(id)+`.users (id, jsonb)
		VALUES ($1, jsonb_build_object('id', $1::uuid, 'barcode', 'P-17'))`, patron); err != nil {
		t.Fatal(err)
	}
	for _, user := range []uuid.UUID{patron, other} {
		if _, _, err := postgres.NewLockStore(db).Acquire(ctx, lock.Request{UserID: user, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := postgres.NewLockSettingsStore(db).Change(ctx, schemas.LockSettingsChange{
		Value: []byte(`{"checkOutLockFeatureEnabled":true}`), Reason: "two\nlines", ByName: "Ada",
	}); err != nil {
		t.Fatal(err)
	}
	ended := []schemas.PastCheckOut{
		{ID: uuid.NewString(), Outcome: "lent", UserBarcode: "P-17", ItemBarcode: "I-1"},
		{
			ID: uuid.NewString(), Outcome: "limit_reached", UserBarcode: "P-17", ItemBarcode: "I-2",
			Reason: "too many", AgoMs: 7_200_000,
		},
		{ID: uuid.NewString(), Outcome: "lent", UserBarcode: "P-18", ItemBarcode: "I-3", Machine: "kiosk-1"},
	}
	if err := postgres.NewHistoryStore(db, false).Add(ctx, "desk", schemas.CheckOutReport{CheckOuts: ended}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want int // rows
		has  string
	}{
		{args: "locks", want: 2, has: patron.String()},
		{args: "locks -user p-17", want: 1, has: patron.String()},
		{args: "locks -user " + other.String(), want: 1, has: other.String()},
		{args: "tenants", want: 1, has: `"state":"current"`},
		{args: "history", want: 3, has: "too many"},
		{args: "history -user p-17", want: 2, has: "I-1"},
		{args: "history -user p-17 -since 1h", want: 1, has: "I-1"},
		{args: "history -item i-3", want: 1, has: `"machine":"kiosk-1"`},
		{args: "history -outcome limit_reached", want: 1, has: "I-2"},
		{args: "changes", want: 1, has: `"by":"Ada"`},
	} {
		rows := readRows(t, append(strings.Fields(tt.args), "-tenant", id.String())...)
		text, _ := json.Marshal(rows)
		if len(rows) != tt.want || !strings.Contains(string(text), tt.has) {
			t.Errorf("%s: got %s, want %d rows with %s", tt.args, text, tt.want, tt.has)
		}
	}
	out, _ := runCommand(t, pgtest.URL(t), "changes", "-tenant", id.String())
	if !strings.Contains(out, "two lines") || !strings.HasPrefix(out, "DATE") {
		t.Errorf("changes as text: %q, want one line for one change", out)
	}
	out, _ = runCommand(t, pgtest.URL(t), "settings", "-tenant", id.String())
	if !strings.Contains(out, `"checkOutLockFeatureEnabled": true`) {
		t.Errorf("settings: %s", out)
	}
}

// The sweep has removed the patron.
func TestChanges_NameNoPatronOfAnOldRelease(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store := postgres.NewLockStore(db)
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ForceRelease(ctx, l.ID, lock.Note{Reason: "stuck"}); err != nil {
		t.Fatal(err)
	}
	if n, err := postgres.NewLockChangeStore(db).BlankReleases(ctx, 0, 10); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	rows := readRows(t, "changes", "-tenant", id.String())
	if len(rows) != 1 || rows[0]["lock"] != l.ID.String() || rows[0]["patron"] != "" {
		t.Errorf("got %v, want one release of %s without a patron", rows, l.ID)
	}
}

func TestCommands_EndWithTheStatusOfTheirFault(t *testing.T) {
	t.Parallel()
	const nowhere = "postgres://u@127.0.0.1:1/x"
	_, id := pgtest.New(t)
	for _, tt := range []struct {
		args, database string
		want           int
	}{
		{args: "tenants", database: pgtest.URL(t), want: 0},
		{args: "locks", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant A!", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant " + id.String() + " -reason x", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant " + id.String() + " -release 7", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant diku -release " + uuid.NewString() + " -reason x -json", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant diku -release " + uuid.NewString() + " -reason x -user P-1", database: pgtest.URL(t), want: 2},
		{args: "locks -tenant " + id.String() + " -user nope", database: pgtest.URL(t), want: 1},
		{args: "history -tenant " + id.String() + " -outcome Lent", database: pgtest.URL(t), want: 2},
		{args: "history -tenant " + id.String() + " -since -1h", database: pgtest.URL(t), want: 2},
		{
			args:     "locks -tenant diku -release " + uuid.NewString() + " -reason " + strings.Repeat("x", 501),
			database: pgtest.URL(t), want: 2,
		},
		{args: "migrate -tenant A!", database: pgtest.URL(t), want: 2},
		{args: "migrate -down -tenant A!", database: pgtest.URL(t), want: 2},
		{args: "changes -tenant " + id.String() + " now", database: pgtest.URL(t), want: 2},
		{args: "version now", want: 2},
		{args: "migrate -down", database: pgtest.URL(t), want: 2},
		{args: "tenants", database: nowhere, want: 3},
		{args: "settings -tenant diku", database: nowhere, want: 3},
		{args: "migrate -tenant diku", database: nowhere, want: 3},
		{args: "doctor", database: nowhere, want: 2}, // it is broken
		{args: "doctor", database: "no URL", want: 2},
		{args: "tenants", database: "no URL", want: 1},
	} {
		if _, got := runCommand(t, tt.database, strings.Fields(tt.args)...); got != tt.want {
			t.Errorf("%s: got status %d, want %d", tt.args, got, tt.want)
		}
	}
}

func TestDoctor_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	table := postgres.SchemaName(id) + "."
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	levels := func(args ...string) (map[string]string, int) {
		t.Helper()
		out, status := runCommand(t, pgtest.URL(t), append([]string{"doctor", "-json", "-tenant", id.String()}, args...)...)
		var rows []map[string]string
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		found := map[string]string{}
		for _, r := range rows {
			check := strings.TrimPrefix(r["check"], id.String()+": ")
			found[check] = r["level"]
			if (r["advice"] == "") != (r["level"] == "ok") {
				t.Errorf("%v: advice is for what is wrong", r)
			}
		}
		return found, status
	}
	found, status := levels()
	for _, check := range []string{
		"database", "PostgreSQL", "clock", "connections", "PgBouncer", "migrations", "feature", "patience", "limits", "fence",
		"sweep", "outbox",
	} {
		if found[check] != "ok" {
			t.Errorf("%s is %q, want ok", check, found[check])
		}
	}
	if found["standby"] != "warning" {
		t.Errorf("without a standby: %v", found)
	}
	if found["settings"] == "ok" && status != 1 { // the server of the tests may be one that a crash may empty
		t.Errorf("got status %d, want 1 after warnings", status)
	}

	exec(`INSERT INTO ` + table + `check_out_lock (user_id, creation_date, ttl_ms)
		VALUES (gen_random_uuid(), now() - interval '2 hours', 1)`)
	exec(`INSERT INTO ` + table + `outbox (creation_date, event_type, payload)
		VALUES (now() - interval '1 hour', 'LOG_RECORD', '{}')`)
	exec(`INSERT INTO ` + table + `loan (id, jsonb) VALUES (gen_random_uuid(), '{"status":{"name":"Open"}}')`)
	exec(`UPDATE ` + table + `loan_history SET jsonb = jsonb_set(jsonb, '{createdDate}',
		to_jsonb(to_char((now() - interval '1 hour') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')))`)
	ctx := okapi.WithTenant(t.Context(), id)
	if _, err := postgres.NewLockSettingsStore(db).Change(ctx, schemas.LockSettingsChange{
		Value: []byte(`{"retryIntervals":[1500]}`),
	}); err != nil {
		t.Fatal(err)
	}
	found, _ = levels("-patience", "1s")
	for _, check := range []string{"sweep", "outbox", "fence", "patience"} {
		if found[check] != "warning" {
			t.Errorf("%s is %q, want a warning", check, found[check])
		}
	}
	exec(`UPDATE ` + table + `schema_migrations SET dirty = true`)
	found, status = levels()
	if found["migrations"] != "broken" || status != 2 {
		t.Errorf("a dirty schema: %v with status %d", found, status)
	}
}

func TestDoctor_GoesOnAfterATenantThatCannotBeRead(t *testing.T) {
	t.Parallel()
	db, first := pgtest.New(t)
	_, second := pgtest.New(t)
	_, third := pgtest.New(t)
	tenants := []okapi.Tenant{first, second, third}
	// As doctor reads them.
	slices.SortFunc(tenants, func(a, b okapi.Tenant) int { return strings.Compare(a.String(), b.String()) })
	broken, purged, sound := tenants[0], tenants[1], tenants[2]
	rename := func(ctx context.Context, from, to string) {
		t.Helper()
		if _, err := db.Pool().Exec(ctx, "ALTER TABLE "+postgres.SchemaName(broken)+"."+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	rename(t.Context(), "outbox", "lost")
	t.Cleanup(func() { rename(context.Background(), "lost", "outbox") })

	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	// The tenant is still listed while its settings are locked.
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+postgres.SchemaName(purged)+".lock_settings_version"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		out, _ := runCommand(t, pgtest.URL(t), "doctor", "-json")
		ended <- out
	}()
	const blockedSQL = `
SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))`
	for blocked := false; !blocked; {
		select {
		case out := <-ended:
			t.Fatal(out)
		default:
		}
		if err := tx.QueryRow(t.Context(), blockedSQL).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(t.Context(), "DROP SCHEMA "+postgres.SchemaName(purged)+" CASCADE"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := <-ended
	for want, there := range map[string]bool{
		broken.String() + ": records": true, broken.String() + ": outbox": false,
		purged.String() + ": ": false, sound.String() + ": outbox": true,
		`"check": "database",
    "level": "broken"`: false,
	} {
		if strings.Contains(out, want) != there {
			t.Errorf("%q is there: %t, want %t:\n%s", want, !there, there, out)
		}
	}
}
