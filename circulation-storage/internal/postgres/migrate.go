package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
	"checkoutlock/schemas/okapi"
)

const dropSchemaSQL = `DROP SCHEMA IF EXISTS {schema} CASCADE`

// schemaOf returns the tenant's schema with its migrations.
func (db *DB) schemaOf(id okapi.Tenant) database.Schema {
	return database.Schema{
		Name: SchemaName(id), URL: db.conns.MigrateURL, Files: db.migrations, Folder: "sql", Log: db.log,
		Explain: func(dirty *database.DirtyError) error { return explainDirty(id, dirty) },
	}
}

// Install creates the tenant's schema if there is none, and runs the migrations that it
// lacks. Any number of instances may do so at once.
func (db *DB) Install(ctx context.Context, id okapi.Tenant) error {
	if err := db.schemaOf(id).Up(ctx); err != nil {
		return fmt.Errorf("migrating tenant %s: %w", id, err)
	}
	return nil
}

// MigrateDown undoes all migrations of the tenant. Every record and lock is lost; the
// empty schema stays.
func (db *DB) MigrateDown(ctx context.Context, id okapi.Tenant) error {
	if err := db.schemaOf(id).Down(ctx); err != nil {
		return fmt.Errorf("undoing the migrations of tenant %s: %w", id, err)
	}
	return nil
}

// Repair completes the migration that left the tenant's schema dirty, and then installs
// what is missing.
func (db *DB) Repair(ctx context.Context, id okapi.Tenant) error {
	if err := db.schemaOf(id).Repair(ctx); err != nil {
		return fmt.Errorf("repairing tenant %s: %w", id, err)
	}
	return nil
}

// Purge drops the tenant's schema with everything in it. A tenant that is not
// installed is not an error.
func (db *DB) Purge(ctx context.Context, id okapi.Tenant) error {
	ctx = okapi.WithTenant(ctx, id)
	err := db.runTx(ctx, db.conns.Ordinary, longTx, "dropping a schema", func(tx pgx.Tx) error {
		if err := db.schemaOf(id).Lock(ctx, tx); err != nil {
			return err
		}
		_, err := runStatement(ctx, tx, dropSchemaSQL)
		return err
	})
	if err != nil {
		return fmt.Errorf("dropping the schema of tenant %s: %w", id, err)
	}
	return nil
}

// explainDirty returns the fault that names the command that repairs the schema.
func explainDirty(id okapi.Tenant, dirty *database.DirtyError) error {
	state := database.SchemaState{Installed: true, Version: uint(max(dirty.Version, 0)), Dirty: true}
	schemas, err := compareSchemas([]okapi.Tenant{id}, []database.SchemaState{state})
	if err != nil {
		return err
	}
	return schemas[0].Fault()
}
