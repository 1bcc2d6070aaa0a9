package pgtest

import (
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = $1", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNew_TenantLivesAsLongAsTheTest(t *testing.T) {
	t.Parallel()
	var schema string
	var closed *pgxpool.Pool
	t.Run("test", func(t *testing.T) {
		db, id := New(t)
		schema, closed = postgres.SchemaName(id), db.Pool()
		if got := schemas(t, schema); got != 1 {
			t.Errorf("during the test: got %d schemas, want 1", got)
		}
		var tables int
		if err := db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = $1", schema).Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if tables == 0 {
			t.Error("the tenant has no tables, want it migrated")
		}
		if got := db.Pool().Config().MaxConns; got != 8 { // the other half is for lending
			t.Errorf("pool: got %d connections, want 8", got)
		}
	})
	if got := schemas(t, schema); got != 0 {
		t.Errorf("after the test: got %d schemas, want none", got)
	}
	if err := closed.Ping(t.Context()); err == nil {
		t.Error("after the test the pool is open")
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

func TestOpen_GivenDatabaseStartsNothing(t *testing.T) {
	t.Parallel()
	var d database
	d.open("postgres://somewhere/else")
	if d.url != "postgres://somewhere/else" || d.server != nil || d.err != nil {
		t.Errorf("got %s, %v, %v, want the given address and no server", d.url, d.server, d.err)
	}
	if err := d.stop(); err != nil {
		t.Errorf("stop: got %v, want nil", err)
	}
}

func TestWithPool(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://u:p@h:1/d":                                   "postgres://u:p@h:1/d?pool_max_conns=16",
		"postgresql://h/d?sslmode=disable&pool_max_conns=90":     "postgresql://h/d?pool_max_conns=16&sslmode=disable",
		"host=h user=u dbname=d default_query_exec_mode=exec":    "host=h user=u dbname=d default_query_exec_mode=exec pool_max_conns=16",
		"postgres://h/d?default_query_exec_mode=simple_protocol": "postgres://h/d?default_query_exec_mode=simple_protocol&pool_max_conns=16",
	} {
		got, err := withPool(given)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", given, got, err, want)
		}
		if _, err := pgxpool.ParseConfig(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	if got, err := withPool("postgres://u:secret@h:port/d"); err == nil {
		t.Errorf("no URL: got %s, want an error", got)
	}
}
