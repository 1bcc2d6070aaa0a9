package pgtest

import (
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// schemas counts the schemas of that name.
func schemas(t *testing.T, name string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = $1",
		name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNew_TenantLivesAsLongAsTheTest(t *testing.T) {
	t.Parallel()
	var schema string
	t.Run("test", func(t *testing.T) {
		db, id := New(t)
		schema = postgres.SchemaName(id)
		if got := schemas(t, schema); got != 1 {
			t.Errorf("during the test: got %d schemas, want 1", got)
		}
		var tables int
		if err := db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = $1",
			schema).Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if tables == 0 {
			t.Error("the tenant has no tables, want it migrated")
		}
	})
	if got := schemas(t, schema); got != 0 {
		t.Errorf("after the test: got %d schemas, want none", got)
	}
}

func TestTenant_IsAnotherEachTime(t *testing.T) {
	t.Parallel()
	a, b := Tenant(t), Tenant(t)
	if a == b {
		t.Errorf("got %s twice", a)
	}
	if want := regexp.MustCompile(`^t[0-9a-f]{16}$`); !want.MatchString(a.String()) {
		t.Errorf("got %s, want %s", a, want)
	}
}
