package postgres_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
	"checkoutlock/devpostgres"
	"checkoutlock/devpostgres/testserver"
)

// newHarnessOnOwnServer is a desk on a PostgreSQL of its own, for tests that change or
// crash the server. Both are gone when the test ends.
func newHarnessOnOwnServer(t *testing.T, settings map[string]string) (harness, *devpostgres.Server) {
	t.Helper()
	server := testserver.Start(t, settings)
	l := harness{t: t, id: pgtest.Tenant(t)}
	l = l.reach(server.URL())
	if err := l.db.Install(t.Context(), l.id); err != nil {
		t.Fatal(err)
	}
	return l, server
}

// reach is the same desk through pools of its own.
func (l harness) reach(url string) harness {
	l.t.Helper()
	db, err := postgres.Open(l.t.Context(), database.Settings{URL: url, MaxConns: 16},
		slog.New(slog.NewTextHandler(l.t.Output(), nil)))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(db.Close)
	l.db = db
	return l.on(db)
}

// untilCount waits until a query of the server's views answers n.
func (l harness) untilCount(n int, statement string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	for got := -1; got != n; {
		if err := l.db.Pool().QueryRow(ctx, statement).Scan(&got); err != nil {
			l.t.Fatalf("%s answers %d, want %d: %v", statement, got, n, err)
		}
	}
}
