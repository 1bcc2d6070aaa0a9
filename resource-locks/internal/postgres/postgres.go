// Package postgres holds all SQL of the service: the store of flat locks, the store of
// claims, and the migrations' driver.
//
// Every statement names its tables with the schema, quoted, and needs no search_path. So
// PgBouncer's transaction mode works.
package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/database"
	"checkoutlock/migrations"
	"checkoutlock/schemas/fault"
)

// schemaName is the PostgreSQL schema of the service.
const schemaName = "resource_locks"

// DB reaches the schema of the service. It is safe for concurrent use.
type DB struct {
	conns                        *database.DB
	urgent, unreserved, ordinary connections
	// bounds of a read, and of a write that sets its wait for a row; empty without PgBouncer if the
	// session has a time-out for statements
	readBounds, writeBounds string
	schema                  string
	log                     *slog.Logger
}

// Open prepares the connections. It does not connect: Await waits for the server.
func Open(ctx context.Context, cfg database.Settings, log *slog.Logger) (*DB, error) {
	conns, err := database.Open(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	db := &DB{conns: conns, schema: schemaName, log: log}
	db.splitConnections()
	cc := conns.Ordinary.Config().ConnConfig
	if cc.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement || cc.RuntimeParams["statement_timeout"] == "" {
		db.readBounds, db.writeBounds = readBounds, writeBounds
	}
	return db, nil
}

// InSchema returns the same connections to another schema, such as that of a test.
func (db *DB) InSchema(name string) *DB {
	other := *db
	other.schema = name
	return &other
}

// Close waits for connections in use and closes them.
func (db *DB) Close() { db.conns.Close() }

// Collector returns the metrics of the connections.
func (db *DB) Collector() prometheus.Collector { return db.conns }

// CountRefusal is database.DB.CountRefusal.
func (db *DB) CountRefusal() bool { return db.conns.CountRefusal() }

// Pool returns the connections for ordinary work, for tests.
func (db *DB) Pool() *pgxpool.Pool { return db.conns.Ordinary }

// nameSchema puts the schema of the service into a statement that runs on the connection.
func (db *DB) nameSchema(conn *pgxpool.Conn, statement string) string {
	return database.NameSchemaOn(conn, db.schema, statement)
}

// Migrations returns the schema with its migrations, to install, repair or undo them.
func (db *DB) Migrations() database.Schema {
	return database.Schema{
		Name: db.schema, URL: db.conns.MigrateURL, Files: migrations.ResourceLocks, Folder: "resourcelocks", Explain: explainDirty, Log: db.log,
	}
}

// explainDirty names the command that repairs the schema.
func explainDirty(err *database.DirtyError) error {
	return fault.Wrap(err, fault.TenantNotReady,
		"The schema is dirty: migration %d did not end. Repair it with resource-locks migrate -repair", err.Version)
}

// Await is database.DB.Await.
func (db *DB) Await(ctx context.Context, patience time.Duration, prepare func() error) error {
	return db.conns.Await(ctx, patience, prepare)
}

// Ready returns why the service cannot work: the server, or missing migrations. The text
// of its error is safe to show.
func (db *DB) Ready(ctx context.Context) error {
	states, err := db.conns.CheckServer(ctx, db.schema)
	if err != nil {
		return err
	}
	versions, err := migrations.ResourceLocksVersions()
	if err != nil {
		return err
	}
	state, needed := states[0], versions[len(versions)-1]
	switch {
	case state.Dirty:
		return explainDirty(&database.DirtyError{Version: int(state.Version)})
	case state.Version == 0: // also one whose migrations were undone
		return fmt.Errorf("the schema %s is not installed: run resource-locks migrate", db.schema)
	case state.Version < needed:
		return fmt.Errorf("the schema %s has version %d, and this build needs %d: run resource-locks migrate", db.schema, state.Version, needed)
	}
	return nil
}
