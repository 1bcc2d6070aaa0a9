package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"checkoutlock/migrations"
	"checkoutlock/schemas/tenant"
)

const versionTable = "schema_migrations"

// CREATE SCHEMA IF NOT EXISTS alone is not safe against itself: two at once may
// fail on the catalogue's unique index. The transaction-level advisory lock
// keeps them apart, through PgBouncer too.
const (
	lockSchemaSQL   = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
	createSchemaSQL = `CREATE SCHEMA IF NOT EXISTS {schema}`
	dropSchemaSQL   = `DROP SCHEMA IF EXISTS {schema} CASCADE`
)

// Install creates the tenant's schema, if there is none, and runs the migrations
// that it lacks. Any number of instances may do so at once: golang-migrate's
// advisory lock lets one work and the others find nothing left to do.
func (db *DB) Install(ctx context.Context, id tenant.ID) error {
	if err := db.changeSchema(ctx, id, createSchemaSQL); err != nil {
		return fmt.Errorf("creating the schema of tenant %s: %w", id, err)
	}
	if err := db.migrate(ctx, id, (*migrate.Migrate).Up); err != nil {
		return fmt.Errorf("migrating tenant %s: %w", id, err)
	}
	return nil
}

// MigrateDown undoes all migrations of the tenant: every record and lock is
// lost, the empty schema stays.
func (db *DB) MigrateDown(ctx context.Context, id tenant.ID) error {
	if err := db.migrate(ctx, id, (*migrate.Migrate).Down); err != nil {
		return fmt.Errorf("undoing the migrations of tenant %s: %w", id, err)
	}
	return nil
}

// Purge drops the tenant's schema with everything in it. A tenant that is not
// installed is not an error.
func (db *DB) Purge(ctx context.Context, id tenant.ID) error {
	if err := db.changeSchema(ctx, id, dropSchemaSQL); err != nil {
		return fmt.Errorf("dropping the schema of tenant %s: %w", id, err)
	}
	return nil
}

func (db *DB) changeSchema(ctx context.Context, id tenant.ID, statement string) error {
	statement, err := query(tenant.NewContext(ctx, id), statement)
	if err != nil {
		return err
	}
	return db.runTx(ctx, db.pool, longTx, "changing a schema", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSchemaSQL, id.Schema()); err != nil {
			return fmt.Errorf("waiting for other instances: %w", err)
		}
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// migrate runs one direction on a connection of its own, whose search_path is
// the tenant's schema: the migration files name no schema.
func (db *DB) migrate(ctx context.Context, id tenant.ID, direction func(*migrate.Migrate) error) (err error) {
	cc, err := pgx.ParseConfig(db.migrateURL)
	if err != nil {
		return errors.New("the migration URL cannot be read as a PostgreSQL connection URL") // pgx's message may hold the password
	}
	for name := range cc.RuntimeParams {
		if strings.HasPrefix(name, "pool_") { // pgxpool's own, unknown to PostgreSQL
			delete(cc.RuntimeParams, name)
		}
	}
	cc.RuntimeParams["search_path"] = pgx.Identifier{id.Schema()}.Sanitize()
	conn := stdlib.OpenDB(*cc)
	defer func() { err = errors.Join(err, ignoreClosed(conn.Close())) }()

	source, err := iofs.New(migrations.SQL, "sql")
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	driver, err := migratepgx.WithInstance(conn, &migratepgx.Config{MigrationsTable: versionTable, SchemaName: id.Schema()})
	if err != nil {
		return fmt.Errorf("preparing the version table: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return fmt.Errorf("preparing migrations: %w", err)
	}
	defer func() {
		sourceErr, dbErr := m.Close()
		err = errors.Join(err, sourceErr, ignoreClosed(dbErr))
	}()
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()
	if err := direction(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return err
	}
	return ctx.Err()
}

// ignoreClosed drops the complaint about a connection that migrate closed first.
func ignoreClosed(err error) error {
	if errors.Is(err, sql.ErrConnDone) || (err != nil && strings.Contains(err.Error(), sql.ErrConnDone.Error())) {
		return nil
	}
	return err
}
