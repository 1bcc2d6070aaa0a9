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
	"checkoutlock/circulation-storage/internal/records"
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

// shared is the database of this test process. TestMain can hand it to tests in a variable
// only.
var shared database

type database struct {
	start  sync.Once
	inMain bool
	url    string
	err    error
	server *devpostgres.Server // nil for a database that this process did not start
}

// Main runs the tests of a package and returns the exit code: os.Exit(pgtest.Main(m)). The
// database is that of TEST_DATABASE_URL, else a throw-away server of this process. That one
// starts when the first test asks for it and stops after the last.
func Main(m *testing.M) int {
	shared.inMain = true
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// URL returns the address of the tests' database. The user of the throw-away one is a
// superuser.
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
	// The server outlives the first test, which starts it.
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

// New returns a pool of sixteen connections to the database of [URL], and a tenant installed
// in it. When the test ends, New drops the tenant and closes the pool.
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

// withPool adds the pool's size to a connection string of either form that pgx reads: a URL,
// or words like host=….
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
