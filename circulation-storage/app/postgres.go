package app

import (
	"context"
	"log/slog"

	"checkoutlock/circulation-storage/internal/postgres/embedded"
)

// PostgreSQL is a private database server for development, demonstrations and
// tests of the pair.
type PostgreSQL = embedded.Server

// ErrDataDirInUse is a data directory on which another server runs.
var ErrDataDirInUse = embedded.ErrDataDirInUse

// DefaultDataDir returns the data directory, in the user's cache, of the program
// called name.
func DefaultDataDir(name string) (string, error) { return embedded.DefaultDataDir(name) }

// StartPostgreSQL starts one. The data stays in dataDir between runs; "" means a
// throw-away server. binDir is PG_BIN, "" means search. The context ends the start
// only: the caller stops the server.
func StartPostgreSQL(ctx context.Context, dataDir, binDir string, log *slog.Logger) (*PostgreSQL, error) {
	return embedded.Start(ctx, embedded.Options{
		DataDir: dataDir, BinDir: binDir, Log: log, Settings: map[string]string{"max_connections": "300"},
	})
}
