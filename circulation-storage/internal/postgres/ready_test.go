package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/database"
	"checkoutlock/schemas/okapi"
)

func versionTable(id okapi.Tenant) string {
	return pgx.Identifier{postgres.SchemaName(id), "schema_migrations"}.Sanitize()
}

// execute runs a statement that needs no answer.
func execute(t *testing.T, db *postgres.DB, statement string) {
	t.Helper()
	if _, err := db.Pool().Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// openAt opens a pool on the address and closes it when the test ends.
func openAt(t *testing.T, address string, log *slog.Logger) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), database.Settings{URL: address}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func parseURL(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// emptyDatabase makes a database and returns its address. It is gone when the test
// ends.
func emptyDatabase(t *testing.T) (address, name string) {
	t.Helper()
	admin := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler))
	name = "test_" + pgtest.Tenant(t).String()
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if _, err := admin.Pool().Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+
			" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u := parseURL(t, pgtest.URL(t))
	u.Path = "/" + name
	return u.String(), name
}

func TestReady_NamesTheTenantThatLacksMigrations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		statement string // %s is the table of versions
		says      string // "" is ready
	}{
		"an installed tenant":       {statement: "SELECT FROM %s", says: ""},
		"a tenant of a newer build": {statement: "UPDATE %s SET version = 9999", says: ""},
		"all migrations undone":     {statement: "DELETE FROM %s", says: "has migration 0, this build needs migration"},
		"no table of versions": { // a purge would refuse a schema without a table of ours
			statement: "ALTER TABLE %s RENAME TO tenant_job", says: "Unknown tenant",
		},
		"tables of an older build": {
			statement: "UPDATE %s SET version = 1", says: "has migration 1, and this build begins with",
		},
		"a migration that did not end": {
			statement: "UPDATE %s SET dirty = true", says: "circulation-storage migrate -repair -tenant",
		},
		"one of an older build": {
			statement: "UPDATE %s SET version = 2, dirty = true", says: "first upgrade it with a revision that",
		},
		"the first one did not end": {
			statement: "UPDATE %s SET version = -1, dirty = true", says: "Migration 0 of tenant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := pgtest.New(t)
			execute(t, db, fmt.Sprintf(tt.statement, versionTable(id)))
			err := db.Ready(t.Context(), []okapi.Tenant{id})
			if tt.says == "" && err != nil {
				t.Errorf("got %v, want ready", err)
			}
			if tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) ||
				!strings.Contains(err.Error(), id.String())) {
				t.Errorf("got %v, want %q and the tenant", err, tt.says)
			}
			if err := db.Ready(t.Context(), nil); err != nil {
				t.Errorf("without tenants of its own: got %v, want ready", err)
			}
		})
	}
}

func TestReady_IsOneStatementForAllTenants(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t)
	ids := make([]okapi.Tenant, 10)
	for i := range ids {
		ids[i] = pgtest.Tenant(t)
		execute(t, db, "CREATE SCHEMA "+postgres.SchemaName(ids[i]))
		t.Cleanup(func() {
			if err := db.Purge(context.WithoutCancel(t.Context()), ids[i]); err != nil {
				t.Error(err)
			}
		})
		execute(t, db, "CREATE TABLE "+versionTable(ids[i])+" AS SELECT 9999::bigint AS version, false AS dirty")
	}
	before := db.UrgentPool().Stat().AcquireCount()
	if err := db.Ready(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if n := db.UrgentPool().Stat().AcquireCount() - before; n != 1 {
		t.Errorf("%d statements for %d tenants, want 1", n, len(ids))
	}
}

func TestReady_RefusesAServerThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	address, name := emptyDatabase(t)
	admin := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler))
	execute(t, admin, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	db := openAt(t, address, slog.New(slog.DiscardHandler))
	if err := db.Ready(t.Context(), nil); err == nil || err.Error() != "the database is read-only (a standby?)" {
		t.Errorf("got %v, want it to say that the database is read-only", err)
	}
	wantUp(t, db, 0)
	// The connection stays read-only, as one to a server that became a standby.
	execute(t, admin, "ALTER DATABASE "+name+" SET default_transaction_read_only = off")
	if err := db.Await(t.Context(), time.Minute, nil); err != nil {
		t.Errorf("got %v, want a new connection to the primary", err)
	}
	wantUp(t, db, 1)
}

// wantUp checks the metric of a database that can be used.
func wantUp(t *testing.T, db *postgres.DB, want float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(db.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if got := f.GetMetric()[0].GetGauge().GetValue(); f.GetName() == "database_up" && got != want {
			t.Errorf("database_up is %v, want %v", got, want)
		}
	}
}

func TestReady_NamesTheServerAndTheCauseWithoutSecrets(t *testing.T) {
	t.Parallel()
	u := parseURL(t, pgtest.URL(t))
	missing := *u
	missing.Path = "/no_such_database"
	for name, tt := range map[string]struct {
		address string
		says    string
	}{
		"no server": {"postgres://u:s3cret@127.0.0.1:1/x", "PostgreSQL at 127.0.0.1:1: connection refused"},
		"two hosts": {
			"postgres://u:s3cret@127.0.0.1:1,127.0.0.2:2/x", "PostgreSQL at 127.0.0.1:1, 127.0.0.2:2: connection refused",
		},
		"unknown database": {
			missing.String(), "PostgreSQL at " + u.Host + `: FATAL: database "no_such_database" does not exist (SQLSTATE 3D000)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := openAt(t, tt.address, slog.New(slog.DiscardHandler)).Ready(t.Context(), nil)
			if err == nil || err.Error() != tt.says {
				t.Errorf("got %v, want %s", err, tt.says)
			}
		})
	}
}

func TestSchemas_AreThoseWithATableOfVersions(t *testing.T) {
	t.Parallel()
	address, _ := emptyDatabase(t)
	db := openAt(t, address, slog.New(slog.DiscardHandler))
	if schemas, err := db.Schemas(t.Context()); err != nil || len(schemas) > 0 {
		t.Errorf("an empty database: got %v, %v, want no schemas", schemas, err)
	}
	execute(t, db, `
CREATE SCHEMA bare_mod_circulation_storage;
CREATE SCHEMA folio_mod_circulation_storage;
CREATE TABLE folio_mod_circulation_storage.loan (id uuid);
CREATE SCHEMA other_module;
CREATE TABLE other_module.schema_migrations (version bigint, dirty boolean);
CREATE SCHEMA old_mod_circulation_storage;
CREATE TABLE old_mod_circulation_storage.schema_migrations AS SELECT 3::bigint AS version, false AS dirty;
CREATE SCHEMA torn_mod_circulation_storage;
CREATE TABLE torn_mod_circulation_storage.schema_migrations AS SELECT 3::bigint AS version, true AS dirty;
CREATE SCHEMA undone_mod_circulation_storage;
CREATE TABLE undone_mod_circulation_storage.schema_migrations (version bigint, dirty boolean);
CREATE SCHEMA fine_mod_circulation_storage;
CREATE TABLE fine_mod_circulation_storage.schema_migrations AS SELECT 9999::bigint AS version, false AS dirty;`)
	schemas, err := db.Schemas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]readiness.State{}
	for _, s := range schemas {
		got[s.Tenant.String()] = s.State()
		one, err := db.Schema(okapi.WithTenant(t.Context(), s.Tenant))
		if err != nil || one != s {
			t.Errorf("alone it is %+v, %v, want %+v", one, err, s)
		}
	}
	want := map[string]readiness.State{
		"old": readiness.Behind, "torn": readiness.Dirty, "undone": readiness.Behind, "fine": readiness.Current,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, name := range []string{"bare", "folio", "nowhere"} {
		id, err := okapi.ParseTenant(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := db.Schema(okapi.WithTenant(t.Context(), id)); err != nil || s.State() != readiness.NotInstalled {
			t.Errorf("%s: got %+v, %v, want it not installed", name, s, err)
		}
	}
}

// A backup that a superuser restores belongs to the superuser.
func TestSchemas_LeavesOutWhatThisRoleMayNotRead(t *testing.T) {
	t.Parallel()
	address, _ := emptyDatabase(t)
	execute(t, openAt(t, address, slog.New(slog.DiscardHandler)), `
CREATE SCHEMA foreign_mod_circulation_storage CREATE TABLE schema_migrations (version bigint, dirty boolean);
CREATE SCHEMA ours_mod_circulation_storage CREATE TABLE schema_migrations (version bigint, dirty boolean);
GRANT USAGE ON SCHEMA ours_mod_circulation_storage TO public;
GRANT SELECT ON ours_mod_circulation_storage.schema_migrations TO public`)
	schemas, err := openAt(t, address+"&role=pg_monitor", slog.New(slog.DiscardHandler)).Schemas(t.Context())
	if err != nil || len(schemas) != 1 || schemas[0].Tenant.String() != "ours" {
		t.Errorf("got %v, %v, want ours alone", schemas, err)
	}
}

func TestConnectionWatch_LogsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.URL(t))
	p.open(t)
	lines := make(logLines, 100)
	db := openAt(t, p.url, slog.New(lines))
	if err := db.Ready(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.shut(t)
	for range 5 {
		if err := db.Ready(t.Context(), nil); err == nil {
			t.Error("ready without a database")
		}
	}
	p.open(t)
	for range 5 {
		for err := errors.New("not yet"); err != nil; err = db.Ready(t.Context(), nil) {
		}
	}
	close(lines)
	var got []string
	for line := range lines {
		got = append(got, line)
	}
	want := []string{
		"ERROR the database is lost database=" + p.address + " err=connection refused",
		"INFO the database is back database=" + p.address + " refused=0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSchemaName_LeadsBackToItsTenant(t *testing.T) {
	t.Parallel()
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := postgres.TenantOfSchema(postgres.SchemaName(tenant)); !ok || got != tenant {
		t.Errorf("got %v %t, want %v", got, ok, tenant)
	}
	for _, foreign := range []string{
		"public", "_mod_circulation_storage", "diku_mod_users", "Diku_mod_circulation_storage",
	} {
		if got, ok := postgres.TenantOfSchema(foreign); ok {
			t.Errorf("%s was taken for tenant %s", foreign, got)
		}
	}
}

// A probe that gives up first, such as HAProxy's after 2 s, leaves a reason that says so.
func TestReady_OfAProbeThatGivesUp(t *testing.T) {
	t.Parallel()
	db := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler))
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := db.Ready(ctx, nil); err == nil || !strings.HasSuffix(err.Error(), ": no answer in time") {
		t.Errorf("got %v, want no answer in time", err)
	}
}
