package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/migrations"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// newTenant returns a tenant that is not installed and is purged when the test ends.
func newTenant(t *testing.T) (*postgres.DB, okapi.Tenant) {
	t.Helper()
	db, id := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler)), pgtest.Tenant(t)
	t.Cleanup(func() {
		if err := db.Purge(context.WithoutCancel(t.Context()), id); err != nil {
			t.Error(err)
		}
	})
	return db, id
}

// files returns three migrations. The second one also runs the given statement.
func files(second string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range map[string]string{
		"0001_one.up.sql": "CREATE TABLE one (id int)", "0001_one.down.sql": "DROP TABLE one",
		"0002_two.up.sql":   "CREATE TABLE two_a (id int); CREATE TABLE two_b (id int); " + second,
		"0002_two.down.sql": "DROP TABLE two_a; DROP TABLE two_b -- both",
		"0003_three.up.sql": "CREATE TABLE three (id int) -- the last", "0003_three.down.sql": "DROP TABLE three",
	} {
		m["sql/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// listVersions returns the versions of the real migrations, in their order.
func listVersions(t *testing.T) []uint {
	t.Helper()
	versions, err := migrations.Versions()
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// until returns the real migrations up to a version.
func until(t *testing.T, version uint) fs.FS {
	t.Helper()
	m := fstest.MapFS{}
	names, err := fs.Glob(migrations.SQL, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if path.Base(name) < fmt.Sprintf("%04d", version+1) {
			text, err := fs.ReadFile(migrations.SQL, name)
			if err != nil {
				t.Fatal(err)
			}
			m[name] = &fstest.MapFile{Data: text}
		}
	}
	return m
}

func wantVersion(t *testing.T, db *postgres.DB, id okapi.Tenant, version uint, dirty bool) {
	t.Helper()
	s, err := db.Schema(okapi.WithTenant(t.Context(), id))
	if err != nil || s.Version != version || s.Dirty != dirty {
		t.Errorf("got %+v, %v, want version %d, dirty %t", s, err, version, dirty)
	}
}

func TestInstall_LeavesNoDirtySchema(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]string{
		"a statement fails":      "SELECT 1/0",
		"the connection is lost": "SELECT pg_terminate_backend(pg_backend_pid())",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := newTenant(t)
			db.UseMigrations(files(fails))
			if err := db.Install(t.Context(), id); err == nil {
				t.Error("the migration did not fail")
			}
			wantVersion(t, db, id, 1, false)
			db.UseMigrations(files(""))
			if err := db.Install(t.Context(), id); err != nil {
				t.Errorf("the next try: %v", err)
			}
			wantVersion(t, db, id, 3, false)
			if err := db.MigrateDown(t.Context(), id); err != nil {
				t.Error(err)
			}
			wantVersion(t, db, id, 0, false)
		})
	}
}

// lockMigrations takes the lock that another instance holds while it migrates.
func lockMigrations(t *testing.T, id okapi.Tenant) (key string, unlock func()) {
	t.Helper()
	db := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler))
	conn, err := db.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := conn.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	if key, err = database.GenerateAdvisoryLockId(name, postgres.SchemaName(id), "schema_migrations"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock($1::bigint)`, key); err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if _, err := conn.Exec(context.WithoutCancel(t.Context()), `SELECT pg_advisory_unlock_all()`); err != nil {
			t.Error(err)
		}
		conn.Release()
	})
	t.Cleanup(unlock)
	return key, unlock
}

// untilWaiting waits until n sessions wait for the lock.
func untilWaiting(t *testing.T, db *postgres.DB, key string, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for waiting := 0; waiting < n; <-tick.C {
		if err := db.Pool().QueryRow(t.Context(), `
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND (classid::bigint << 32) + objid::bigint = $1::bigint`, key).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMain makes the library's own time-out for the lock 10 ms.
func TestInstall_WaitsForOtherInstancesWithoutATimeOut(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	key, unlock := lockMigrations(t, id)
	const instances = 5
	ended := make(chan error, instances)
	for range instances {
		go func() { ended <- db.Install(t.Context(), id) }()
	}
	untilWaiting(t, db, key, instances)
	select {
	case err := <-ended:
		t.Fatalf("one gave up: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	for range instances {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	versions := listVersions(t)
	latest := versions[len(versions)-1]
	wantVersion(t, db, id, latest, false)
}

func TestInstall_EndsWithItsContextWhileItWaits(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	key, _ := lockMigrations(t, id)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Install(ctx, id) }()
	untilWaiting(t, db, key, 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestInstall_OfADirtySchemaNamesTheCommand(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	execute(t, db, "UPDATE "+versionTable(id)+" SET dirty = true")
	err := db.Install(t.Context(), id)
	if !fault.Is(err, fault.TenantNotReady) ||
		!strings.Contains(err.Error(), "circulation-storage migrate -repair -tenant "+id.String()) {
		t.Errorf("got %v, want %s with the command", err, fault.TenantNotReady)
	}
}

func TestInstall_KeepsTheSchemaOfANewerBuild(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	db.UseMigrations(files(""))
	if err := db.Install(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	older := files("").(fstest.MapFS)
	delete(older, "sql/0003_three.up.sql")
	delete(older, "sql/0003_three.down.sql")
	db.UseMigrations(older)
	if err := db.Install(t.Context(), id); err != nil {
		t.Errorf("with an older build: %v", err)
	}
	wantVersion(t, db, id, 3, false)
	gap := files("").(fstest.MapFS)
	execute(t, db, "UPDATE "+versionTable(id)+" SET version = 2")
	delete(gap, "sql/0002_two.up.sql")
	delete(gap, "sql/0002_two.down.sql")
	db.UseMigrations(gap)
	if err := db.Install(t.Context(), id); err == nil {
		t.Error("a version between the files is taken for a newer one")
	}
}

// describeSchema returns what the tenant's schema has, as text.
func describeSchema(t *testing.T, db *postgres.DB, id okapi.Tenant) string {
	t.Helper()
	rows, _ := db.Pool().Query(t.Context(), describeSchemaSQL, postgres.SchemaName(id)) // CollectRows returns its error
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(lines) == 0 {
		t.Fatal(lines, err)
	}
	return strings.Join(lines, "\n")
}

func TestInstall_LeavesTheBaselineOfAnEarlierBuild(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	execute(t, db, "UPDATE "+postgres.SchemaName(id)+".circulation_rules SET rules = 'kept'")
	before := describeSchema(t, db, id)
	if err := db.Install(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if after := describeSchema(t, db, id); after != before {
		t.Errorf("the schema has changed: %s", compareLines(before, after))
	}
	var rules string
	query := "SELECT rules FROM " + postgres.SchemaName(id) + ".circulation_rules"
	if err := db.Pool().QueryRow(t.Context(), query).Scan(&rules); err != nil || rules != "kept" {
		t.Errorf("the rules are %q, %v, want them as they were", rules, err)
	}
}

func TestInstall_RefusesASchemaBelowTheBaseline(t *testing.T) {
	t.Parallel()
	first := listVersions(t)[0]
	for _, version := range []uint{1, first - 1} {
		for name, migrate := range map[string]func(*postgres.DB, context.Context, okapi.Tenant) error{
			"an upgrade": (*postgres.DB).Install, "a repair": (*postgres.DB).Repair, "undoing": (*postgres.DB).MigrateDown,
		} {
			t.Run(fmt.Sprintf("%s of version %d", name, version), func(t *testing.T) {
				t.Parallel()
				db, id := pgtest.New(t)
				execute(t, db, fmt.Sprintf("UPDATE %s SET version = %d", versionTable(id), version))
				before := describeSchema(t, db, id)
				err := migrate(db, t.Context(), id)
				says := fmt.Sprintf("a revision that still has the migrations up to %d", first)
				if !fault.Is(err, fault.TenantNotReady) || !strings.Contains(err.Error(), says) ||
					!strings.Contains(err.Error(), id.String()) {
					t.Errorf("got %v, want %s with %q", err, fault.TenantNotReady, says)
				}
				wantVersion(t, db, id, version, false)
				if after := describeSchema(t, db, id); after != before {
					t.Errorf("the schema has changed: %s", compareLines(before, after))
				}
			})
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		installed string // the last file that ran
		change    string // %s is the table of versions
		says      string // "" is repaired
	}{
		"a schema that is not dirty":  {installed: "0001", change: "SELECT FROM %s", says: ""},
		"the file left nothing":       {installed: "0001", change: "UPDATE %s SET version = 2, dirty = true", says: ""},
		"the first file left nothing": {installed: "", change: "INSERT INTO %s VALUES (1, true)", says: ""},
		"the last file left nothing":  {installed: "0002", change: "UPDATE %s SET version = 3, dirty = true", says: ""},
		"the file had ended":          {installed: "0002", change: "UPDATE %s SET dirty = true", says: ""},
		"the last file had ended":     {installed: "0003", change: "UPDATE %s SET dirty = true", says: ""},
		"a part of the file was lost": {
			installed: "0002", change: "UPDATE %s SET dirty = true; DROP TABLE {schema}.two_b", says: "a person must mend it",
		},
		"undoing everything did not end": {
			installed: "0001", change: "UPDATE %s SET version = -1, dirty = true", says: "no migration -1",
		},
		"a migration of a newer build": {
			installed: "0003", change: "UPDATE %s SET version = 9, dirty = true", says: "this build has no migration 9",
		},
		"the file left nothing, with break": {
			installed: "0001", change: "UPDATE %s SET version = 2, dirty = true; CREATE TABLE {schema}.three (id int)",
			says: "already exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := newTenant(t)
			first := fstest.MapFS{}
			for name, file := range files("").(fstest.MapFS) {
				if path.Base(name) < tt.installed+"_x" {
					first[name] = file
				}
			}
			if tt.installed == "" {
				execute(t, db, "CREATE SCHEMA "+postgres.SchemaName(id)+"; CREATE TABLE "+versionTable(id)+
					" (version bigint, dirty boolean)")
			} else {
				db.UseMigrations(first)
				if err := db.Install(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			execute(t, db, strings.ReplaceAll(fmt.Sprintf(tt.change, versionTable(id)), "{schema}", postgres.SchemaName(id)))
			db.UseMigrations(files(""))
			err := db.Repair(t.Context(), id)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %q", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			wantVersion(t, db, id, 3, false)
		})
	}
}

// Repair completes any migration that a crash of an older build interrupted, both if the
// file had ended and if it had left nothing.
func TestRepair_OfEachMigration(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	for i, version := range listVersions(t) {
		db.UseMigrations(until(t, version))
		for _, step := range []string{"left nothing", "had ended"} {
			if step == "left nothing" && i == 0 {
				if err := db.Install(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				continue
			}
			execute(t, db, fmt.Sprintf("UPDATE %s SET version = %d, dirty = true", versionTable(id), version))
			if err := db.Repair(t.Context(), id); err != nil {
				t.Fatalf("migration %d %s: %v", version, step, err)
			}
			wantVersion(t, db, id, version, false)
		}
	}
	if s, err := db.Schema(okapi.WithTenant(t.Context(), id)); err != nil || s.State() != readiness.Current {
		t.Errorf("got %+v, %v, want it current", s, err)
	}
}
