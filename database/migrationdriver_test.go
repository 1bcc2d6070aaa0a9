package database_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

// schemaAt is a schema with one migration, which runs at the URL.
func schemaAt(url, name string) database.Schema {
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
	schema := schemaAt(replaceHost(t, primary, silent.address+","+hostOf(t, primary)), "past_silent_host")
	if err := schema.Up(ctx); err != nil {
		t.Errorf("migrating: %v", err)
	}
	if silent.came.Load() == 0 {
		t.Error("no connection came to the silent host")
	}
}

// PostgreSQL ends the session of a process that froze or vanished, and with it its locks.
func TestSchema_SessionsOfMigrationsHaveBounds(t *testing.T) {
	t.Parallel()
	schema := schemaAt(testserver.URL(t), "bounded_sessions")
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
