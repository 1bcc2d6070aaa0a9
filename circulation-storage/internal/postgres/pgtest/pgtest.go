// Package pgtest gives tests a real PostgreSQL and a tenant of their own in it.
//
// A package of tests calls [Main] from its TestMain. Its tests then call [New], or [URL]
// and [Tenant]. Tests of package postgres are in package postgres_test, since pgtest
// imports postgres.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/schemas/okapi"
)

const (
	cleanupTimeout = 2 * time.Minute // for a slow disk
	// sharedConnections are enough for each of the tests that run at once.
	sharedConnections = 64
	ownConnections    = 16
)

// pool is what the tests of this process share, because a connection of their own takes longer than
// most of them. The first test opens it.
type pool struct {
	open sync.Once
	db   *postgres.DB
	err  error
}

// shared is the pool of this process. Tests reach it in a variable only.
var shared pool

// Main runs the tests of a package and returns the exit code: os.Exit(pgtest.Main(m)).
func Main(m *testing.M) int { return testserver.Main(m, spares.Drop) }

// spares are the schemas that tests of this process have given back. Tests reach them in a
// variable only.
var spares testserver.Spares

// URL returns the address of the tests' database. The user of the throw-away one is a
// superuser.
func URL(tb testing.TB) string {
	tb.Helper()
	return testserver.URL(tb)
}

// Tenant returns the id of a tenant that no other test has: t and 16 hexadecimal digits. It
// is not installed.
func Tenant(tb testing.TB) okapi.Tenant {
	tb.Helper()
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	id, err := okapi.ParseTenant("t" + hex.EncodeToString(b[:]))
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// New returns the pool of connections to the database of [URL] that the tests of this process
// share, and a tenant installed in it. [Open] is for a test that needs a pool of its own. When the
// test ends, New removes the tenant. The schema is as the migrations leave it, but another tenant
// may have had it under another name.
func New(tb testing.TB) (*postgres.DB, okapi.Tenant) {
	tb.Helper()
	db, id := open(tb), Tenant(tb)
	used, err := install(tb.Context(), &spares, db, id)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupTimeout)
		defer cancel()
		if err := giveBack(ctx, &spares, db, id, used); err != nil {
			tb.Error(err)
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return db, id
}

// install makes a tenant with a schema as the migrations leave it.
func install(
	ctx context.Context, spares *testserver.Spares, db *postgres.DB, id okapi.Tenant,
) (testserver.Schema, error) {
	migrate := func(ctx context.Context) error { return db.Install(ctx, id) }
	return spares.Install(ctx, db.Pool(), postgres.SchemaName(id), migrate)
}

// giveBack removes a tenant. Another one may get its schema.
func giveBack(
	ctx context.Context, spares *testserver.Spares, db *postgres.DB, id okapi.Tenant, used testserver.Schema,
) error {
	return spares.GiveBack(ctx, db.Pool(), used, func(ctx context.Context) error { return db.Purge(ctx, id) })
}

// Open returns a pool of sixteen connections for a test that uses them up, counts them or closes
// them. It closes when the test ends.
func Open(tb testing.TB) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(tb.Context(), database.Settings{URL: testserver.PatientURL(tb), MaxConns: ownConnections},
		slog.New(slog.NewTextHandler(tb.Output(), nil)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

// open returns the shared pool.
func open(tb testing.TB) *postgres.DB {
	tb.Helper()
	url := testserver.PatientURL(tb)
	shared.open.Do(func() {
		// It outlives the first test, which opens it.
		shared.db, shared.err = postgres.Open(context.WithoutCancel(tb.Context()),
			database.Settings{URL: url, MaxConns: sharedConnections}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
		if shared.err == nil {
			testserver.AtEnd(shared.db.Close)
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.db
}

// Listed is a page of records with how many match in all.
type Listed struct {
	Records []json.RawMessage
	Total   int
}

// Begin implements records.Sink.
func (l *Listed) Begin(total int) error {
	l.Total = total
	return nil
}

// Record implements records.Sink.
func (l *Listed) Record(doc json.RawMessage) error {
	l.Records = append(l.Records, doc)
	return nil
}

// List returns a page of a store's records.
func List(ctx context.Context, store records.Store, t records.Type, p records.Page) (Listed, error) {
	var l Listed
	err := store.List(ctx, t, p, &l)
	return l, err
}

// Uncounted is a commit.Observer that ignores all.
type Uncounted struct{}

// Ended implements commit.Observer.
func (Uncounted) Ended(commit.Kind, commit.Outcome, time.Duration) {}

// LentUnfenced implements commit.Observer.
func (Uncounted) LentUnfenced() {}

// LockReleased implements commit.Observer.
func (Uncounted) LockReleased(context.Context, uuid.UUID) {}

// RequestsExpired implements commit.Observer.
func (Uncounted) RequestsExpired(int) {}
