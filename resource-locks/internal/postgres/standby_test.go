package postgres_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/schemas/fault"
)

// openServer connects to a server until the test ends.
func openServer(t *testing.T, url string) *postgres.DB {
	t.Helper()
	cfg := database.Settings{URL: url, MaxConns: 4, StatementTimeout: time.Minute}
	db, err := postgres.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// TestLockStore_StandbyAnswersNothing makes a standby of a server with a lock, as a failover
// does. It lags behind for ever.
func TestLockStore_StandbyAnswersNothing(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, nil)
	db := openServer(t, server.URL())
	if err := db.Migrations().Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := postgres.NewLockStore(db)
	held := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "d"}, Owner: "ann", TTL: time.Hour}
	if _, err := store.Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	refused := held
	refused.Owner = "bob"
	if g, err := store.Acquire(t.Context(), refused); err != nil || g.Outcome != engine.Held {
		t.Fatalf("got %+v, %v", g, err)
	}
	var dir string
	if err := db.Pool().QueryRow(t.Context(), `SHOW data_directory`).Scan(&dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func(t *testing.T, db *postgres.DB) {
		t.Helper()
		store, claims := postgres.NewLockStore(db), postgres.NewClaimStore(db)
		if ids, err := claims.NewGrants(t.Context(), uuid.New()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("new grants: %v, %v, want %s", ids, err, fault.Unavailable)
		}
		page := make([]engine.ClaimState, 1)
		if states, err := claims.ClaimsOf(t.Context(), uuid.New(), uuid.Nil, page); !fault.Is(err, fault.Unavailable) {
			t.Errorf("claims: %v, %v, want %s", states, err, fault.Unavailable)
		}
		if g, err := store.Acquire(t.Context(), refused); !fault.Is(err, fault.Unavailable) { // refused before
			t.Errorf("acquire: %+v, %v, want %s", g, err, fault.Unavailable)
		}
		if list, err := store.List(t.Context(), engine.Filter{Namespace: "ns"}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("list: %+v, %v, want %s", list, err, fault.Unavailable)
		}
		for _, name := range []string{"d", "free"} {
			l, err := store.Fetch(t.Context(), engine.Key{Namespace: "ns", Name: name})
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("fetch of %s: %+v, %v, want %s", name, l, err, fault.Unavailable)
			}
		}
	}
	t.Run("a pool that led to it before", func(t *testing.T) { ask(t, db) })
	for name, parameters := range map[string]string{
		"a direct connection":              "",
		"statements, as through PgBouncer": "&default_query_exec_mode=exec",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openServer(t, server.URL()+parameters)
			ask(t, db)
			if err := db.Ready(t.Context()); err == nil {
				t.Error("it is ready")
			}
		})
	}
}
