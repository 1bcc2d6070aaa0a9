// Package postgres holds all SQL of the service: the lock store, the record
// store, the commits of check-outs and check-ins, and the migrations.
//
// Every statement names its tables with the tenant's schema, quoted, and needs no
// search_path. So one statement stays one round trip, and PgBouncer's transaction
// mode works.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/migrations"
)

// Config says where the database is.
type Config struct {
	// URL is a pgx connection URL. Through PgBouncer in transaction mode it needs
	// default_query_exec_mode=exec.
	URL string
	// MaxConns is the greatest number of open connections, at least 2. 0 takes the
	// URL's pool_max_conns, else the default of pgx.
	MaxConns int32
	// StatementTimeout bounds each statement on the server, for callers that froze or
	// vanished. It is the time-out of a request. 0 sets no bound.
	StatementTimeout time.Duration
	// MigrateURL is a direct connection for migrations, which need a session of
	// their own. Empty means URL.
	MigrateURL string
}

// DB reaches all tenants' schemas. It is safe for concurrent use.
//
// Half of its connections are for lending: locks, counts, commits and their settling.
// The other half is for everything else, so no check-out waits for a connection that a
// slow query of records uses.
type DB struct {
	pool       *pgxpool.Pool // for records, lists, history, upkeep
	lending    *pgxpool.Pool
	opened     atomic.Bool  // both pools exist
	lastReset  atomic.Int64 // UnixNano
	migrateURL string
	migrations fs.FS
	hosts      string // of the URL, for logs and errors
	log        *slog.Logger
}

// Open prepares the pools. It does not connect: Await waits for the server.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*DB, error) {
	base, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, errors.New("DATABASE_URL cannot be read as a PostgreSQL connection URL") // pgx's message may hold the password
	}
	size := cmp.Or(cfg.MaxConns, base.MaxConns)
	db := &DB{migrateURL: cmp.Or(cfg.MigrateURL, cfg.URL), migrations: migrations.SQL, hosts: strings.Join(hosts(base.ConnConfig), ", "), log: log}
	base.ConnConfig.Tracer = &connectionWatch{hosts: db.hosts, log: log}
	for _, p := range []struct {
		pool **pgxpool.Pool
		size int32
	}{{&db.lending, size / 2}, {&db.pool, size - size/2}} {
		*p.pool, err = pgxpool.NewWithConfig(ctx, poolConfig(base, p.size, cfg.StatementTimeout, db.resetPools))
		if err != nil {
			return nil, fmt.Errorf("opening the connection pool: %w", err)
		}
	}
	db.opened.Store(true)
	logTarget(ctx, cfg.URL, base.ConnConfig, log)
	return db, nil
}

// Close waits for connections in use and closes the pools.
func (db *DB) Close() {
	db.pool.Close()
	db.lending.Close()
}

// Pool returns the connections for records, for tests and statistics.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// LendingPool returns the connections for lending, for tests and statistics.
func (db *DB) LendingPool() *pgxpool.Pool { return db.lending }
