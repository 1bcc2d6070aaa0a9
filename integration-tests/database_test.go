package integration_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// execSQL runs statements in one session. Clean-ups call it too, when the test's context
// has ended.
func execSQL(t *testing.T, databaseURL string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// createDatabase makes an empty database for a test that reads all tenants. The end of the
// test drops it.
func createDatabase(t *testing.T) string {
	t.Helper()
	server := databaseURL(t)
	name := "it_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	execSQL(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { execSQL(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	return replaceDatabase(t, server, name)
}

// replaceDatabase returns the address of another database of the same server.
func replaceDatabase(t *testing.T, databaseURL, name string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// tableName returns the qualified name of a table of the tenant.
func (p *pair) tableName(name string) string {
	return pgx.Identifier{schemaName(p.Storage.Tenant), name}.Sanitize()
}

// queryValue reads one row of a database.
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
