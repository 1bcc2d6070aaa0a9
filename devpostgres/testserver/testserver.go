// Package testserver gives the tests of a package a PostgreSQL: that of TEST_DATABASE_URL,
// or a throw-away one of the test process.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"checkoutlock/devpostgres"
)

const (
	// databaseVariable names a running server for the tests, such as CI's.
	databaseVariable = "TEST_DATABASE_URL"
	// maxConnections lets some tests with a pool of their own run at once.
	maxConnections = "300"
	// isolation is not that which the services need: their sessions must set it.
	isolation = "serializable"

	startTimeout = 5 * time.Minute // a download of the binaries included
	cleanTimeout = 2 * time.Minute // for a slow disk
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

	mu    sync.Mutex
	atEnd []func()
}

// AtEnd calls f after the last test of this process, before its server stops.
func AtEnd(f func()) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.atEnd = append(shared.atEnd, f)
}

// Main runs the tests of a package and returns the exit code: os.Exit(testserver.Main(m)). The
// database is that of TEST_DATABASE_URL, else a throw-away server of this process. That one
// starts when the first test asks for it and stops after the last. Each of clean then removes from
// the database of TEST_DATABASE_URL what the tests have left, if they asked for it.
func Main(m *testing.M, clean ...func(ctx context.Context, url string) error) int {
	shared.inMain = true
	code := m.Run()
	for _, f := range shared.atEnd {
		f()
	}
	if err := errors.Join(shared.clean(clean), shared.stop()); err != nil {
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
		tb.Fatal("TestMain must call testserver.Main")
	}
	shared.start.Do(func() { shared.open(os.Getenv(databaseVariable)) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.url
}

// PatientURL is URL for connections that a test does not lose: a slow host has long to make one, and to
// answer over one that was idle.
func PatientURL(tb testing.TB) string {
	tb.Helper()
	u, err := url.Parse(URL(tb))
	if err != nil {
		tb.Fatalf("the tests need a database that is named by a URL: %v", err)
	}
	q := u.Query()
	q.Set("connect_timeout", "60")
	q.Set("pool_ping_timeout", "60s")
	u.RawQuery = q.Encode()
	return u.String()
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
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		// Autovacuum would analyze tables that an earlier test has filled, and so change later plans.
		Settings: map[string]string{
			"max_connections": maxConnections, "default_transaction_isolation": isolation, "autovacuum": "off",
		},
	})
	if d.err == nil {
		d.url = d.server.URL()
	}
}

// clean runs the steps on a server that outlives the tests.
func (d *database) clean(steps []func(ctx context.Context, url string) error) error {
	if d.url == "" || d.server != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	var failed []error
	for _, step := range steps {
		failed = append(failed, step(ctx, d.url))
	}
	return errors.Join(failed...)
}

func (d *database) stop() error {
	if d.server == nil {
		return nil
	}
	return d.server.Stop()
}
