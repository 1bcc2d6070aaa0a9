// Package postgres holds all SQL of the service: the lock store, the record
// store, the commits of check-outs and check-ins, and the migrations.
//
// Every statement names its tables with the tenant's schema, quoted, and needs no
// search_path. So one statement stays one round trip, and PgBouncer's transaction
// mode works.
package postgres

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/database"
	"checkoutlock/migrations"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// DB reaches all tenants' schemas. It is safe for concurrent use.
//
// Half of its connections are urgent: facts, locks, counts, commits and their settling.
// The other half is for everything else, so no check-out waits for a connection that a
// slow query of records uses.
type DB struct {
	conns      *database.DB
	migrations fs.FS
	log        *slog.Logger
}

// Open prepares the pools. It does not connect: Await waits for the server.
func Open(ctx context.Context, cfg database.Settings, log *slog.Logger) (*DB, error) {
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

// Pool returns the connections for records, for tests.
func (db *DB) Pool() *pgxpool.Pool { return db.conns.Ordinary }

// UrgentPool returns the urgent connections, for tests.
func (db *DB) UrgentPool() *pgxpool.Pool { return db.conns.Urgent }

// Ready returns why the service cannot work. It returns nil if the database answers and
// takes writes, and these tenants have the migrations of this build or have moved to another
// database. It runs one statement for any number of installed tenants. The text is safe to show.
func (db *DB) Ready(ctx context.Context, ids []okapi.Tenant) error {
	states, err := db.conns.CheckServer(ctx, convert.All(ids, SchemaName)...)
	if err != nil {
		return err
	}
	schemas, err := compareSchemas(ids, states)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range schemas {
		moved := false
		if !s.Installed {
			if moved, err = db.IsMoved(ctx, s.Tenant); err != nil {
				return err
			}
		}
		if problem := s.Problem(); problem != "" && !moved {
			errs = append(errs, errors.New(problem))
		}
	}
	return errors.Join(errs...)
}

// Await is database.DB.Await.
func (db *DB) Await(ctx context.Context, patience time.Duration, prepare func() error) error {
	return db.conns.Await(ctx, patience, prepare)
}

// toFault is database.ToFault with the faults of a tenant that is not served, and of a row
// lock that another commit holds.
func toFault(op string, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	code, _ := database.SQLState(err)
	switch code {
	case database.UndefinedTable, database.InvalidSchemaName:
		return fault.Wrap(err, fault.UnknownTenant, "Unknown tenant: install it with POST /_/tenant")
	case database.UndefinedColumn:
		return fault.Wrap(err, fault.TenantNotReady, "The tenant's database is of an earlier version: upgrade it with POST /_/tenant")
	case database.LockNotAvailable:
		f := fault.New(fault.InUse, "A running commit uses it right now: try again, found while %s", op)
		f.RetryAfter, f.Err = time.Second, err
		return f
	}
	return database.ToFault(op, err)
}
