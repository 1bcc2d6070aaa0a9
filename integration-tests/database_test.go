package integration_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres"

	"github.com/google/uuid"
)

// startPostgreSQL starts a PostgreSQL for a test that ends, changes or cuts it off.
func startPostgreSQL(t *testing.T) *devpostgres.Server {
	t.Helper()
	pg, err := devpostgres.Start(t.Context(), devpostgres.Options{BinDir: os.Getenv("PG_BIN")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// administrate runs statements as the superuser.
func administrate(t *testing.T, databaseURL string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// createDatabase makes an empty database, for tests that look at all tenants of one.
// It is gone when the test ends.
func createDatabase(t *testing.T) string {
	t.Helper()
	server := databaseURL(t)
	name := "it_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	exec(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func exec(t *testing.T, database, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // clean-up calls too
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql)
	if cerr := conn.Close(ctx); err != nil || cerr != nil {
		t.Fatalf("%s: %v, %v", sql, err, cerr)
	}
}

// replaceDatabase is the address of another database of the same server.
func replaceDatabase(t *testing.T, databaseURL, name string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// tableName is the full name of one of the tenant's tables.
func (p *pair) tableName(name string) string {
	return pgx.Identifier{p.Storage.Tenant + "_mod_circulation_storage", name}.Sanitize()
}

// queryValue asks a database for one value.
func queryValue(t *testing.T, database string, into any, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(into); err != nil {
		t.Fatal(err)
	}
}
