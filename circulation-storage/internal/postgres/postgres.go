// Package postgres holds all SQL of the service: the lock store, the record
// store, the commits of check-outs and check-ins, and the migrations.
//
// Every statement names its tables with the tenant's schema, quoted, and needs no
// search_path. So one statement stays one round trip, and PgBouncer's transaction
// mode works.
package postgres

import (
	"context"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/database"
	"checkoutlock/migrations"
)

// Config says where the database is.
type Config = database.Settings

// DB reaches all tenants' schemas. It is safe for concurrent use.
//
// Half of its connections are urgent: locks, counts, commits and their settling.
// The other half is for everything else, so no check-out waits for a connection that a
// slow query of records uses.
type DB struct {
	conns      *database.DB
	migrations fs.FS
	log        *slog.Logger
}

// Open prepares the pools. It does not connect: Await waits for the server.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*DB, error) {
	conns, err := database.Open(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	return &DB{conns: conns, migrations: migrations.SQL, log: log}, nil
}

// Close waits for connections in use and closes the pools.
func (db *DB) Close() { db.conns.Close() }

// Collector returns the metrics of the connections.
func (db *DB) Collector() prometheus.Collector { return db.conns }

// CountRefusal is database.DB.CountRefusal.
func (db *DB) CountRefusal() bool { return db.conns.CountRefusal() }

// Pool returns the connections for records, for tests and statistics.
func (db *DB) Pool() *pgxpool.Pool { return db.conns.Ordinary }

// UrgentPool returns the urgent connections, for tests and statistics.
func (db *DB) UrgentPool() *pgxpool.Pool { return db.conns.Urgent }
