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
		ctx, free := t.Context(), engine.Key{Namespace: "ns", Name: "free"}
		store, claims, signOuts := postgres.NewLockStore(db), postgres.NewClaimStore(db), postgres.NewSignOutStore(db)
		for name, call := range map[string]func() (any, error){
			"acquire":             func() (any, error) { return store.Acquire(ctx, refused) }, // refused before
			"a group":             func() (any, error) { return store.SendRefusals(ctx, []engine.Acquire{refused, refused}) },
			"fetch":               func() (any, error) { return store.Fetch(ctx, held.Key) },
			"fetch of a free key": func() (any, error) { return store.Fetch(ctx, free) },
			"list":                func() (any, error) { return store.List(ctx, engine.Filter{Namespace: "ns"}) },
			"count":               func() (any, error) { return store.Count(ctx) },
			"forced releases":     func() (any, error) { return store.Releases(ctx, 10) },
			"new grants":          func() (any, error) { return claims.NewGrants(ctx, uuid.New()) },
			"claims of a process": func() (any, error) {
				return claims.ClaimsOf(ctx, uuid.New(), uuid.Nil, make([]engine.ClaimState, 1))
			},
			"all claims": func() (any, error) { return claims.ListClaims(ctx, "", 10) },
			"statistics": func() (any, error) { return claims.Stats(ctx, "ns") },
			"a sign-out": func() (any, error) { return signOuts.IsSignedOut(ctx, uuid.New()) },
		} {
			if got, err := call(); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %+v, %v, want %s", name, got, err, fault.Unavailable)
			}
		}
	}
	t.Run("a pool that led to it before", func(t *testing.T) { ask(t, db) })
	for name, parameters := range map[string]string{
		"a direct connection":              "",
		"statements, as through PgBouncer": "&default_query_exec_mode=exec",
		"statements with a time-out":       "&default_query_exec_mode=exec&statement_timeout=60000",
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
