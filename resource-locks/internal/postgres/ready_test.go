package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

func TestAwait_RefusesAnotherIsolationLevelBehindPgBouncer(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	for level, parameter := range map[string]string{
		"REPEATABLE READ": "repeatable%20read", "SERIALIZABLE": "serializable",
	} {
		db := s.Open("&default_query_exec_mode=exec&default_transaction_isolation=" + parameter)
		for _, err := range []error{db.Await(t.Context(), time.Minute, nil), db.Ready(t.Context())} {
			switch {
			case err == nil, !strings.Contains(err.Error(), "is "+level+": ALTER ROLE ... SET"):
				t.Errorf("got %v, want what to set instead of %s", err, level)
			case strings.Contains(err.Error(), "waited"):
				t.Errorf("got %v, want it at once", err)
			}
		}
	}
}

func TestReady_SaysWhatTheSchemaNeeds(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	for change, says := range map[string]string{
		"version = 7, dirty = true":    "migration 7 did not end. Repair it with resource-locks migrate -repair",
		"version = 7, dirty = false":   "has version 7, and this build needs",
		"version = 100, dirty = false": "",
	} {
		if _, err := db.Pool().Exec(t.Context(), s.NameSchema("UPDATE {schema}.schema_migrations SET "+change)); err != nil {
			t.Fatal(err)
		}
		err := db.Ready(t.Context())
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", change, err, says)
		}
	}
}

func TestInstall_RefusesASchemaBelowTheBaseline(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	table := pgx.Identifier{s.Name, "schema_migrations"}.Sanitize()
	if _, err := db.Pool().Exec(t.Context(), "UPDATE "+table+" SET version = 1"); err != nil {
		t.Fatal(err)
	}
	for name, migrate := range map[string]func(context.Context) error{
		"an upgrade": db.Migrations().Up, "a repair": db.Migrations().Repair, "undoing": db.Migrations().Down,
	} {
		err := migrate(t.Context())
		if !fault.Is(err, fault.TenantNotReady) ||
			!strings.Contains(err.Error(), "a revision that still has the migrations up to 7") {
			t.Errorf("%s: got %v, want what to do first", name, err)
		}
	}
	var version, locks int
	query := "SELECT version, (SELECT count(*) FROM " + pgx.Identifier{s.Name, "lock"}.Sanitize() + ") FROM " + table
	if err := db.Pool().QueryRow(t.Context(), query).Scan(&version, &locks); err != nil || version != 1 {
		t.Errorf("the version is %d, %v, want it unchanged, with its tables", version, err)
	}
}
