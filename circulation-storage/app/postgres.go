package app

import (
	"context"
	"log/slog"

	"checkoutlock/circulation-storage/internal/postgres/embedded"
)

// PostgreSQL is a private database server for development, demonstrations and
// tests of the pair.
type PostgreSQL = embedded.Server

// StartPostgreSQL starts one. dataName names the folder in the user's cache where
// the data stays between runs; "" means a throw-away server. binDir is PG_BIN, ""
// means search. The context ends the start only: the caller stops the server.
func StartPostgreSQL(ctx context.Context, dataName, binDir string, log *slog.Logger) (*PostgreSQL, error) {
	o := embedded.Options{BinDir: binDir, Log: log, Settings: map[string]string{"max_connections": "300"}}
	if dataName != "" {
		dir, err := embedded.DefaultDataDir(dataName)
		if err != nil {
			return nil, err
		}
		o.DataDir = dir
	}
	return embedded.Start(ctx, o)
}
