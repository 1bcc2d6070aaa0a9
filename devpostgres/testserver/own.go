package testserver

import (
	"os"
	"testing"

	"checkoutlock/devpostgres"
)

// Start starts a server of the test's own, for a test that stops it, cuts it off or changes its
// settings. It ends with the test. PG_BIN names the folder of its programs; empty: they are looked for.
func Start(tb testing.TB, settings map[string]string) *devpostgres.Server {
	tb.Helper()
	server, err := devpostgres.Start(tb.Context(), devpostgres.Options{BinDir: os.Getenv("PG_BIN"), Settings: settings})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return server
}
