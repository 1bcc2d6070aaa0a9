package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/migrations"
	"checkoutlock/schemas/okapi"
)

const versionTable = "schema_migrations"

// Two CREATE SCHEMA IF NOT EXISTS at once may fail on the catalogue's unique index. The
// advisory lock of the transaction separates them, also through PgBouncer.
const (
	lockSchemaSQL   = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
	createSchemaSQL = `CREATE SCHEMA IF NOT EXISTS {schema}`
	dropSchemaSQL   = `DROP SCHEMA IF EXISTS {schema} CASCADE`
)

// Install creates the tenant's schema if there is none, and runs the migrations that it
// lacks. Any number of instances may do so at once: an advisory lock lets one work, and
// the others wait and find nothing left to do.
func (db *DB) Install(ctx context.Context, id okapi.Tenant) error {
	if err := db.changeSchema(ctx, id, createSchemaSQL); err != nil {
		return fmt.Errorf("creating the schema of tenant %s: %w", id, err)
	}
	if err := db.migrate(ctx, id, migrateUp); err != nil {
		return fmt.Errorf("migrating tenant %s: %w", id, err)
	}
	return nil
}

// MigrateDown undoes all migrations of the tenant. Every record and lock is lost; the
// empty schema stays.
func (db *DB) MigrateDown(ctx context.Context, id okapi.Tenant) error {
	if err := db.migrate(ctx, id, migrateDown); err != nil {
		return fmt.Errorf("undoing the migrations of tenant %s: %w", id, err)
	}
	return nil
}

// Purge drops the tenant's schema with everything in it. A tenant that is not
// installed is not an error.
func (db *DB) Purge(ctx context.Context, id okapi.Tenant) error {
	if err := db.changeSchema(ctx, id, dropSchemaSQL); err != nil {
		return fmt.Errorf("dropping the schema of tenant %s: %w", id, err)
	}
	return nil
}

func (db *DB) changeSchema(ctx context.Context, id okapi.Tenant, statement string) error {
	ctx = okapi.WithTenant(ctx, id)
	return db.runTx(ctx, db.pool, longTx, "changing a schema", func(tx pgx.Tx) error {
		if _, err := runStatement(ctx, tx, lockSchemaSQL, SchemaName(id)); err != nil {
			return fmt.Errorf("waiting for other instances: %w", err)
		}
		_, err := runStatement(ctx, tx, statement)
		return err
	})
}

// Repair completes the migration that left the tenant's schema dirty, and then installs
// what is missing. Each file is one transaction, so it left all of its work or nothing,
// and Repair finds out which. If neither is true, it fails and changes nothing.
func (db *DB) Repair(ctx context.Context, id okapi.Tenant) error {
	if err := db.migrate(ctx, id, db.repairDirty); err != nil {
		return fmt.Errorf("repairing tenant %s: %w", id, err)
	}
	return db.Install(ctx, id)
}

// migrate runs f with the tenant's migrations, on a connection of its own. Its
// search_path is the tenant's schema, because the migration files name no schema.
func (db *DB) migrate(ctx context.Context, id okapi.Tenant, f func(*migrate.Migrate, *migrationDriver) error) (err error) {
	source, err := iofs.New(db.migrations, "sql")
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	driver, err := openMigrationDriver(ctx, db.migrateURL, id)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	m, err := migrate.NewWithInstance("iofs", source, "postgres", driver)
	if err != nil {
		return errors.Join(fmt.Errorf("preparing migrations: %w", err), source.Close(), driver.Close())
	}
	defer func() {
		sourceErr, dbErr := m.Close()
		err = errors.Join(err, sourceErr, dbErr)
	}()
	m.LockTimeout = math.MaxInt64 // the driver's lock ends with ctx
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()
	err = f(m, driver)
	var dirty migrate.ErrDirty
	switch {
	case errors.As(err, &dirty):
		return dirtyFault(id, dirty.Version)
	case err != nil && !errors.Is(err, migrate.ErrNoChange):
		return err
	}
	return ctx.Err()
}

// dirtyFault returns the fault that names the command that repairs the schema.
func dirtyFault(id okapi.Tenant, version int) error {
	needed, err := migrations.Latest()
	if err != nil {
		return err
	}
	return readiness.Schema{Tenant: id, Installed: true, Version: uint(max(version, 0)), Dirty: true, Needed: needed}.Fault()
}

func migrateUp(m *migrate.Migrate, _ *migrationDriver) error { return m.Up() }

func migrateDown(m *migrate.Migrate, _ *migrationDriver) error { return m.Down() }
