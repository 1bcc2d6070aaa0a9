package database_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

// schemaAt is a new schema with one migration, which runs at the URL. It is dropped when the test ends.
func schemaAt(t *testing.T, url string) database.Schema {
	t.Helper()
	name := "migrated_" + strings.ToLower(rand.Text())
	t.Cleanup(func() { execute(t, testserver.URL(t), `DROP SCHEMA IF EXISTS `+name+` CASCADE`) })
	return database.Schema{
		Name: name, URL: url, Folder: "sql", Log: slog.New(slog.DiscardHandler),
		Files: fstest.MapFS{"sql/0001_first.up.sql": {Data: []byte(`CREATE TABLE first (n integer)`)}},
	}
}

// A host that is frozen takes connections and says nothing.
func TestSchema_MigratesPastASilentHost(t *testing.T) {
	t.Parallel()
	primary := testserver.URL(t)
	silent := newGate(t, hostOf(t, primary))
	silent.keep.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	schema := schemaAt(t, replaceHost(t, primary, silent.address+","+hostOf(t, primary)))
	if err := schema.Up(ctx); err != nil {
		t.Errorf("migrating: %v", err)
	}
	if silent.came.Load() == 0 {
		t.Error("no connection came to the silent host")
	}
}

// A busy server may not take a connection in time.
func TestSchema_ConnectsOnceMore(t *testing.T) {
	t.Parallel()
	primary := testserver.URL(t)
	busy := newGate(t, hostOf(t, primary))
	busy.keep.Store(true)
	go func() {
		lost := <-busy.kept
		busy.keep.Store(false)
		_ = lost.Close()
	}()
	if err := schemaAt(t, replaceHost(t, primary, busy.address)).Up(t.Context()); err != nil {
		t.Errorf("migrating: %v", err)
	}
}

// PostgreSQL ends the session of a process that froze or vanished, and with it its locks.
func TestSchema_SessionsOfMigrationsHaveBounds(t *testing.T) {
	t.Parallel()
	schema := schemaAt(t, testserver.URL(t))
	schema.Admit = func(ctx context.Context, tx pgx.Tx) error {
		for name, want := range map[string]string{
			"idle_in_transaction_session_timeout": "5s",
			"idle_session_timeout":                "1min",
			"statement_timeout":                   "0",
			"tcp_keepalives_idle":                 "10",
			"tcp_keepalives_interval":             "5",
			"tcp_keepalives_count":                "3",
			"tcp_user_timeout":                    "20000",
			"default_transaction_isolation":       "read committed",
		} {
			var got string
			if err := tx.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&got); err != nil {
				return err
			}
			if got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		return nil
	}
	if err := schema.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A request locks two tables in another order than the upgrade of its tenant, which PostgreSQL ends.
func TestSchema_MigratesAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{"sql/0001_one.up.sql": file(`CREATE TABLE first (n integer); CREATE TABLE second (n integer)`)}
	schema := schemaAt(t, testserver.URL(t))
	schema.Files = files
	if err := schema.Up(ctx); err != nil {
		t.Fatal(err)
	}
	request, err := pgx.Connect(ctx, schema.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer request.Close(context.WithoutCancel(ctx))
	exec := func(statement string) {
		t.Helper()
		if _, err := request.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(`SET deadlock_timeout = '1min'; SET search_path = ` + schema.Name)
	exec(`BEGIN; INSERT INTO second VALUES (1)`)
	files["sql/0002_two.up.sql"] = file(`ALTER TABLE first ADD m integer; ALTER TABLE second ADD m integer`)
	done := make(chan error, 1)
	go func() { done <- schema.Up(ctx) }()
	awaitBlocked(ctx, t, request)
	exec(`INSERT INTO first VALUES (1)`)
	exec(`COMMIT`)
	if err := <-done; err != nil {
		t.Errorf("the upgrade: %v", err)
	}
	exec(`SELECT m FROM second`)
}

// awaitBlocked waits until a statement of another connection waits for a lock of conn.
func awaitBlocked(ctx context.Context, t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const blockedSQL = `SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`
	for blocked := 0; blocked == 0; {
		if err := conn.QueryRow(ctx, blockedSQL).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
}

// A backup reads all tables in one transaction. Statements of requests wait behind the migration that
// waits for its end.
func TestSchema_LetsRequestsPassBesideABackup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	schema := schemaAt(t, testserver.URL(t))
	if err := schema.Up(ctx); err != nil {
		t.Fatal(err)
	}
	var conns [2]*pgx.Conn
	for i := range conns {
		var err error
		if conns[i], err = pgx.Connect(ctx, schema.URL); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close(context.WithoutCancel(ctx))
	}
	backup, request := conns[0], conns[1]
	exec := func(conn *pgx.Conn, statement string) {
		t.Helper()
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(backup, `BEGIN; SELECT FROM `+schema.Name+`.first`)
	schema.Files = fstest.MapFS{
		"sql/0001_first.up.sql":  {Data: []byte(`CREATE TABLE first (n integer)`)},
		"sql/0002_second.up.sql": {Data: []byte(`ALTER TABLE first ADD m integer`)},
	}
	done := make(chan error, 1)
	go func() { done <- schema.Up(ctx) }()
	awaitBlocked(ctx, t, backup)
	exec(request, `SET statement_timeout = '20s'; INSERT INTO `+schema.Name+`.first VALUES (1)`)
	exec(backup, `COMMIT`)
	if err := <-done; err != nil {
		t.Errorf("the upgrade: %v", err)
	}
	exec(request, `SELECT m FROM `+schema.Name+`.first`)
}

func TestSchema_EndsAfterManyDeadlocks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	schema := schemaAt(t, testserver.URL(t))
	schema.Files = fstest.MapFS{"sql/0001_first.up.sql": {Data: []byte(`DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$`)}}
	err := schema.Up(ctx)
	if code, _ := database.SQLState(err); code != database.DeadlockDetected {
		t.Errorf("got %v, want the last deadlock", err)
	}
}

func TestSchema_MigratesByAURLForAPool(t *testing.T) {
	t.Parallel()
	if err := schemaAt(t, testserver.URL(t)+"&pool_max_conns=4").Up(t.Context()); err != nil {
		t.Error(err)
	}
}
