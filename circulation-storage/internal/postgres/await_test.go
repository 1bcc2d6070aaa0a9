package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
)

func TestAwait_RefusesAnotherIsolationLevelBehindPgBouncer(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		db := openWith(t, map[string]string{"default_query_exec_mode": "exec", "default_transaction_isolation": level})
		want := "connecting to the database of DATABASE_URL: the database's isolation level must be READ COMMITTED, and is " +
			strings.ToUpper(level) + ": ALTER ROLE ... SET default_transaction_isolation = 'read committed' for the user of " +
			"DATABASE_URL, " +
			"then RECONNECT in PgBouncer"
		if err := db.Await(t.Context(), time.Minute, nil); err == nil || err.Error() != want { // a wait would be in the text
			t.Errorf("got %v, want at once %s", err, want)
		}
		if err := db.Ready(t.Context(), nil); err == nil {
			t.Errorf("%s is ready", level)
		}
	}
}

func TestAwait_EndsAtOnce(t *testing.T) {
	t.Parallel()
	u := parseURL(t, pgtest.URL(t))
	missing := *u
	missing.Path = "/no_such_database"
	stranger := *u
	stranger.User = url.UserPassword("no_such_role", "s3cret")
	const refused = "postgres://u:s3cret@127.0.0.1:1/x"
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx      context.Context //nolint:containedctx // a case of the table
		address  string
		patience time.Duration
		says     string
	}{
		"without patience":    {ctx: t.Context(), address: refused, patience: 0, says: "connection refused"},
		"an unknown database": {ctx: t.Context(), address: missing.String(), patience: time.Hour, says: "no_such_database"},
		"an unknown user":     {ctx: t.Context(), address: stranger.String(), patience: time.Hour, says: "no_such_role"},
		"patience runs out": {
			ctx: t.Context(), address: refused, patience: time.Nanosecond, says: "connection refused (waited for 1ns)",
		},
		"the caller leaves": {ctx: left, address: refused, patience: time.Hour, says: context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := openAt(t, tt.address, slog.New(slog.DiscardHandler)).Await(tt.ctx, tt.patience, nil)
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %q and no password", err, tt.says)
			}
		})
	}
}

func TestAwait_EndsAtOnceForARoleThatMayNotConnect(t *testing.T) {
	t.Parallel()
	address, name := emptyDatabase(t)
	admin := openAt(t, pgtest.URL(t), slog.New(slog.DiscardHandler))
	execute(t, admin, "REVOKE CONNECT ON DATABASE "+name+" FROM PUBLIC")
	execute(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 's3cret'")
	t.Cleanup(func() {
		if _, err := admin.Pool().Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	u := parseURL(t, address)
	u.User = url.UserPassword(name, "s3cret")
	err := openAt(t, u.String(), slog.New(slog.DiscardHandler)).Await(t.Context(), time.Hour, nil)
	if err == nil || !strings.Contains(err.Error(), "permission denied for database") {
		t.Errorf("got %v, want that the role may not connect", err)
	}
}

func TestAwait_EndsAtOnceForMigrationsThatMayNotConnect(t *testing.T) {
	t.Parallel()
	u := parseURL(t, pgtest.URL(t))
	u.User = url.UserPassword("no_such_role", "s3cret")
	addresses := database.Settings{URL: pgtest.URL(t), MigrateURL: u.String()}
	db, err := postgres.Open(t.Context(), addresses, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	err = db.Await(t.Context(), time.Hour, func() error { return db.Install(t.Context(), pgtest.Tenant(t)) })
	if err == nil || strings.Contains(err.Error(), "waited for") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want an error at once and no password", err)
	}
}

func TestAwait_ReturnsWhenTheServerAnswers(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.URL(t))
	lines := make(logLines, 100)
	db := openAt(t, p.url, slog.New(lines))
	ended := make(chan error, 1)
	go func() { ended <- db.Await(t.Context(), time.Hour, nil) }()
	if line := <-lines; !strings.Contains(line, "INFO waiting for the database") ||
		!strings.Contains(line, p.address+": connection refused") {
		t.Errorf("logged %q, want for what it waits", line)
	}
	p.open(t)
	if err := <-ended; err != nil {
		t.Errorf("got %v, want it to go on", err)
	}
	if len(lines) > 0 {
		t.Errorf("logged %q as well, want one line", <-lines)
	}
}

func TestAwait_BeginsAgainWhenTheServerGoesAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		patience time.Duration
		calls    int
	}{
		"without patience": {patience: 0, calls: 1},
		"with patience":    {patience: time.Hour, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, pgtest.URL(t))
			p.open(t)
			db, id, calls := openAt(t, p.url, slog.New(slog.DiscardHandler)), pgtest.Tenant(t), 0
			err := db.Await(t.Context(), tt.patience, func() error {
				calls++
				if calls == 1 {
					p.shut(t)
					defer p.open(t)
				}
				return db.Install(t.Context(), id)
			})
			if calls != tt.calls || (err == nil) != (tt.calls == 2) {
				t.Errorf("called %d times and got %v, want %d calls", calls, err, tt.calls)
			}
		})
	}
}
