// Package pgtest gives tests a real PostgreSQL and a tenant of their own in it.
//
// A package of tests calls [Main] from its TestMain; its tests then call [New], or [URL] and [Tenant]. Tests of
// package postgres do so from package postgres_test, since pgtest imports postgres.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/devpostgres"
	"checkoutlock/schemas/okapi"
)

const (
	// databaseVariable names a running server for the tests, such as CI's.
	databaseVariable = "TEST_DATABASE_URL"
	// maxConnections lets some thirty tests with a pool of their own run at once.
	maxConnections = "300"
	poolSize       = "16"

	startTimeout   = 5 * time.Minute // a download of the binaries included
	cleanupTimeout = 2 * time.Minute // for a slow disk
)

// shared is the database of this test process. Tests get nothing from TestMain but what stands in a variable.
var shared database

type database struct {
	start  sync.Once
	inMain bool
	url    string
	err    error
	server *devpostgres.Server // nil when the database is not ours
}

// Main runs the tests of a package and returns the exit code: os.Exit(pgtest.Main(m)). The database is that of
// TEST_DATABASE_URL, else a throw-away server of this process, started when the first test asks for it and stopped
// when the last has ended.
func Main(m *testing.M) int {
	shared.inMain = true
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// URL returns the address of the database the tests use, as a superuser of it when it is the throw-away one.
func URL(tb testing.TB) string {
	tb.Helper()
	if !shared.inMain {
		tb.Fatal("TestMain must call pgtest.Main")
	}
	shared.start.Do(func() { shared.open(os.Getenv(databaseVariable)) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.url
}

func (d *database) open(given string) {
	if given != "" {
		d.url = given
		return
	}
	// The server outlives the test that happens to be the first to need it.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	d.server, d.err = devpostgres.Start(ctx, devpostgres.Options{
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Settings: map[string]string{"max_connections": maxConnections},
	})
	if d.err == nil {
		d.url = d.server.URL()
	}
}

func (d *database) stop() error {
	if d.server == nil {
		return nil
	}
	return d.server.Stop()
}

// Tenant returns the id of a tenant that no other test has: t and 16 hexadecimal digits. It is not installed.
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

// New returns a pool of sixteen connections to the database of [URL] and a tenant installed in it. When the test ends
// the tenant is dropped and the pool closed.
func New(tb testing.TB) (*postgres.DB, okapi.Tenant) {
	tb.Helper()
	direct := URL(tb)
	pooled, err := withPool(direct)
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(tb.Output(), nil))
	db, err := postgres.Open(tb.Context(), postgres.Config{URL: pooled, MigrateURL: direct}, log)
	if err != nil {
		tb.Fatal(err)
	}
	id := Tenant(tb)
	tb.Cleanup(func() {
		defer db.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupTimeout)
		defer cancel()
		if err := db.Purge(ctx, id); err != nil {
			tb.Error(err)
		}
	})
	if err := db.Install(tb.Context(), id); err != nil {
		tb.Fatal(err)
	}
	return db, id
}

// withPool adds the pool's size to a connection string of either form that pgx reads: a URL, or words like host=….
func withPool(database string) (string, error) {
	if !strings.Contains(database, "://") {
		return database + " pool_max_conns=" + poolSize, nil
	}
	u, err := url.Parse(database)
	if err != nil {
		return "", errors.New(databaseVariable + " is no URL") // the parser's message may hold the password
	}
	q := u.Query()
	q.Set("pool_max_conns", poolSize)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
