package database_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/schemas/fault"
)

// A tenant's statements differ from those of another by the schema's name.
func TestOpen_ConnectionsKeepTheStatementsOfManyTenants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, parameter, value string
		tenants                int
		first, then            int // prepared statements of the first connection, and of the next one
	}{
		{name: "few tenants", parameter: "application_name", value: "test", tenants: 500, first: 500, then: 500},
		{name: "many tenants", parameter: "application_name", value: "test", tenants: 600, first: 512, then: 600},
		{name: "as the URL says", parameter: "statement_cache_capacity", value: "100", tenants: 600, first: 100, then: 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := openWith(t, tt.parameter, tt.value, 0)
			for _, want := range []int{tt.first, tt.then} {
				prepared := prepareFor(t, db.Urgent, tt.tenants)
				if prepared > want || prepared < want-1 { // one makes room for the question
					t.Errorf("%d statements are prepared, want %d", prepared, want)
				}
			}
		})
	}
}

// prepareFor runs a statement for each of some tenants on one connection, and returns how many are prepared.
func prepareFor(t *testing.T, pool *pgxpool.Pool, tenants int) (prepared int) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for i := range tenants {
		statement := database.NameSchemaOn(conn, "tenant"+strconv.Itoa(i), `SELECT '{schema}' || $1`)
		if _, err := conn.Exec(t.Context(), statement, "!"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '% || $1'`).
		Scan(&prepared); err != nil {
		t.Fatal(err)
	}
	return prepared
}

// fillServer returns the URL of a role that may have one connection. PostgreSQL refuses a second one as it
// does at max_connections.
func fillServer(t *testing.T) string {
	t.Helper()
	const role = "one_connection"
	u, err := url.Parse(testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, u.String(), `DROP ROLE IF EXISTS `+role, `CREATE ROLE `+role+` LOGIN PASSWORD 'p' CONNECTION LIMIT 1`)
	full := *u
	full.User = url.UserPassword(role, "p")
	t.Cleanup(func() { execute(t, u.String(), `DROP ROLE `+role) })
	return full.String()
}

// askProcess returns the id of the server's process that serves a connection of the pool.
func askProcess(ctx context.Context, pool *pgxpool.Pool) (pid int, err error) {
	return pid, pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
}

func TestDB_KeepsItsConnectionsWhenTheServerIsFull(t *testing.T) {
	t.Parallel()
	db, log := openLogged(t, fillServer(t))
	want, err := askProcess(t.Context(), db.Urgent)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := askProcess(t.Context(), db.Ordinary)
		return err
	}
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{name: "a statement", call: ask},
		{name: "a read", call: func() error { return db.Read(t.Context(), ask) }},
		{name: "a transaction", call: func() error { return db.Repeat(t.Context(), 1, "lending", ask) }},
	} {
		db.AllowReset()
		if err := tt.call(); !fault.Is(database.ToFault("lending", err), fault.Unavailable) {
			t.Errorf("%s: got %v, want a refusal that is %s", tt.name, err, fault.Unavailable)
		}
		if got, err := askProcess(t.Context(), db.Urgent); got != want {
			t.Errorf("%s: process %d serves the other pool, %v, want %d as before", tt.name, got, err, want)
		}
	}
	if n := log.count("is lost"); n > 0 {
		t.Errorf("the log calls the database lost %d times, want none", n)
	}
}

func TestDB_ResetsOnceInAnOutage(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "resets", 0)
	ask := func() int {
		t.Helper()
		pid, err := askProcess(t.Context(), db.Ordinary)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	for {
		db.AllowReset()
		first, began := ask(), time.Now()
		db.Reset()
		second := ask()
		db.Reset() // for another failure of the same outage
		soon := time.Since(began) < database.ResetPause
		switch third := ask(); {
		case first != second && third == second:
			return
		case first == second, soon: // on a slow host the second one may be that of another outage
			t.Fatalf("the processes are %d, %d and %d, want the second one kept", first, second, third)
		}
	}
}

func TestDB_DropsIdleConnectionsToASilentServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		timeout string
		idle    []time.Duration // of each check
		silent  bool            // each check finds it so
		dropped bool
	}{
		{name: "it answers in time", timeout: "1m", idle: []time.Duration{time.Hour, time.Hour}},
		{name: "it does not once", timeout: "1ns", idle: []time.Duration{time.Hour}, silent: true},
		{name: "it does not twice", timeout: "1ns", idle: []time.Duration{time.Hour, time.Hour}, silent: true, dropped: true},
		{name: "it served a moment ago", timeout: "1ns", idle: []time.Duration{0, 0}},
	} {
		db := openWith(t, "pool_ping_timeout", tt.timeout, 0)
		before, err := askProcess(t.Context(), db.Ordinary)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := db.Urgent.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, idle := range tt.idle {
			checked := pgxpool.ShouldPingParams{Conn: conn.Conn(), IdleDuration: idle}
			if db.Urgent.Config().ShouldPing(t.Context(), checked) != tt.silent {
				t.Errorf("%s: a check found it silent: %t", tt.name, !tt.silent)
			}
		}
		conn.Release()
		after, err := askProcess(t.Context(), db.Ordinary)
		if err != nil || (after != before) != tt.dropped {
			t.Errorf("%s: process %d serves the other pool after %d, %v", tt.name, after, before, err)
		}
	}
}

func TestDB_LeavesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	db := openWith(t, "default_transaction_read_only", "on", 0)
	before, err := askProcess(t.Context(), db.Ordinary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.CheckServer(t.Context()); err == nil {
		t.Error("a read-only server can be used")
	}
	if after, err := askProcess(t.Context(), db.Ordinary); err != nil || after == before {
		t.Errorf("process %d serves, %v, want a new connection", after, err)
	}
}

func TestOpen_KeepsFewIdleConnections(t *testing.T) {
	t.Parallel()
	for _, parameter := range []string{"pool_min_conns", "pool_min_idle_conns"} {
		cfg := openWith(t, parameter, "5", 0).Urgent.Config()
		if cfg.MinConns > cfg.MaxConns || cfg.MinIdleConns > cfg.MaxConns {
			t.Errorf("%s: at least %d and %d idle of %d", parameter, cfg.MinConns, cfg.MinIdleConns, cfg.MaxConns)
		}
	}
}

func TestDB_WaitsForNoDatabaseThatIsUnknown(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/nowhere"
	db, log := openLogged(t, u.String())
	if err := db.Await(t.Context(), time.Minute, nil); err == nil || strings.Contains(err.Error(), "waited") {
		t.Errorf("got %v, want the refusal at once", err)
	}
	if n := log.count("is lost"); n > 0 {
		t.Errorf("the log calls the database lost %d times, but it was never there", n)
	}
}
