package database

import (
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"checkoutlock/config/resolver/resolvertest"
)

//nolint:paralleltest // it replaces the default resolver
func TestOpen_FindsTheServers(t *testing.T) {
	new(resolvertest.Server).ReplaceDefault(t)
	const closedPort = "postgres://u@db.test.:1/x"
	db, err := Open(t.Context(), Settings{URL: closedPort}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	_, migrations := openMigrationDriver(t.Context(), closedPort, "s", slog.New(slog.DiscardHandler))
	for name, err := range map[string]error{
		"ordinary": db.Ordinary.Ping(t.Context()), "urgent": db.Urgent.Ping(t.Context()), "migrations": migrations,
	} {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %v, want a refused connection to the address", name, err)
		}
	}
}
