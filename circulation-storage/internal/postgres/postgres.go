// Package postgres holds all SQL of the service: the lock store, the record
// store, the commits of check-outs and check-ins, and the migrations.
//
// Every statement names its tables with the tenant's schema, quoted, never by
// search_path: one statement stays one round trip, and PgBouncer's transaction
// mode works.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/schemas/tenant"
)

// rollbackTimeout bounds the rollback that follows a cancelled request.
const rollbackTimeout = 5 * time.Second

// commitAttempts is how often a transaction runs that PostgreSQL ended with a
// deadlock or a serialization failure.
const commitAttempts = 4

// Config says where the database is.
type Config struct {
	// URL is a pgx connection URL. Behind PgBouncer in transaction mode it needs
	// default_query_exec_mode=exec.
	URL string
	// MaxConns is the size of the pool; 0 leaves it to the URL's pool_max_conns,
	// else to pgx.
	MaxConns int32
	// MigrateURL is a direct connection for migrations, which need a session of
	// their own; empty means URL.
	MigrateURL string
}

// DB is the connection pool to all tenants' schemas. It is safe for concurrent
// use.
type DB struct {
	pool       *pgxpool.Pool
	migrateURL string
	log        *slog.Logger
}

// Open prepares the pool. It does not connect: Ping tells whether PostgreSQL is
// there.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*DB, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, errors.New("DATABASE_URL cannot be read as a PostgreSQL connection URL") // pgx's message may hold the password
	}
	if cfg.MaxConns > 0 {
		pc.MaxConns = cfg.MaxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("opening the connection pool: %w", err)
	}
	migrateURL := cfg.MigrateURL
	if migrateURL == "" {
		migrateURL = cfg.URL
	}
	return &DB{pool: pool, migrateURL: migrateURL, log: log}, nil
}

// Close waits for connections in use and closes the pool.
func (db *DB) Close() { db.pool.Close() }

// Ping makes one round trip to PostgreSQL.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return toFault("reaching PostgreSQL", err)
	}
	return nil
}

// Pool returns the connection pool, for its statistics.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// schemaMark stands for the tenant's quoted schema in a statement.
const schemaMark = "{schema}"

// query puts the schema of ctx's tenant into a statement. Without a tenant it
// returns the fault that a request without one gets.
func query(ctx context.Context, statement string) (string, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return "", errNoTenant
	}
	return strings.ReplaceAll(statement, schemaMark, pgx.Identifier{id.Schema()}.Sanitize()), nil
}

// inTx runs fn in one READ COMMITTED transaction. It commits when fn returns nil
// and rolls back otherwise, even when ctx is already cancelled. A deadlock or
// serialization failure runs fn again, so fn must not keep state across calls.
//
// fn must not call another service: a transaction held open across a network
// call holds its row locks for as long as the other side likes.
func (db *DB) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	var err error
	for range commitAttempts {
		if err = db.tryTx(ctx, fn); err == nil || !retryable(err) {
			break
		}
		db.log.InfoContext(ctx, "transaction runs again", "op", op, "err", err)
	}
	return toFault(op, err)
}

func (db *DB) tryTx(ctx context.Context, fn func(pgx.Tx) error) error {
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // does nothing after Commit
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}
