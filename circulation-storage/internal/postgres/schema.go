package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/database"
	"checkoutlock/migrations"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/okapi"
)

const schemaSuffix = "_mod_circulation_storage"

// SchemaName returns the name of the tenant's PostgreSQL schema. It has FOLIO's form:
// tenant and module, joined by an underscore.
func SchemaName(tenant okapi.Tenant) string { return tenant.String() + schemaSuffix }

// tenantOfSchema returns the tenant of a schema, false for a foreign schema.
func tenantOfSchema(schema string) (okapi.Tenant, bool) {
	name, ours := strings.CutSuffix(schema, schemaSuffix)
	if !ours {
		return okapi.Tenant{}, false
	}
	tenant, err := okapi.ParseTenant(name)
	return tenant, err == nil
}

// installedSQL finds the schemas that have the table of versions. A schema without it
// is empty or another module's, such as FOLIO's own of the same name. One that this role may not
// read would fail the statement for all tenants.
const installedSQL = `
SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE c.relname = '` + database.VersionTable + `' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname`

// Tenants lists the installed tenants.
func (db *DB) Tenants(ctx context.Context) ([]okapi.Tenant, error) {
	rows, _ := db.conns.Ordinary.Query(ctx, installedSQL) // a Query error surfaces in CollectRows
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, toFault("listing tenants", err)
	}
	var ids []okapi.Tenant
	for _, name := range names {
		if id, ok := tenantOfSchema(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Schemas implements readiness.Schemas with two statements for any number of tenants.
func (db *DB) Schemas(ctx context.Context) ([]readiness.Schema, error) {
	ids, err := db.Tenants(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	states, err := db.conns.ReadSchemas(ctx, convert.All(ids, SchemaName)...)
	if err != nil {
		return nil, toFault("reading the schema versions", err)
	}
	schemas, err := compareSchemas(ids, states)
	return slices.DeleteFunc(schemas, func(s readiness.Schema) bool { return !s.Installed }), err // purged meanwhile
}

// Schema implements readiness.Schemas.
func (db *DB) Schema(ctx context.Context) (readiness.Schema, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return readiness.Schema{}, err
	}
	ids := []okapi.Tenant{id}
	states, err := db.conns.ReadSchemas(ctx, convert.All(ids, SchemaName)...)
	if err != nil {
		return readiness.Schema{}, toFault("reading the schema version", err)
	}
	schemas, err := compareSchemas(ids, states)
	if err != nil {
		return readiness.Schema{}, err
	}
	return schemas[0], nil
}

// IsMoved reports whether deploy/move-tenant has taken the tenant to another database. What it leaves has
// another name, until an operator drops it.
func (db *DB) IsMoved(ctx context.Context, id okapi.Tenant) (bool, error) {
	states, err := db.conns.CheckServer(ctx, SchemaName(id), SchemaName(id)+"_moved")
	return err == nil && !states[0].Installed && states[1].Installed, err
}

// compareSchemas compares the schemas of the tenants with the migrations of this build.
func compareSchemas(ids []okapi.Tenant, states []database.SchemaState) ([]readiness.Schema, error) {
	versions, err := migrations.Versions()
	if err != nil {
		return nil, err
	}
	schemas := make([]readiness.Schema, len(ids))
	for i, s := range states {
		schemas[i] = readiness.Schema{
			Tenant: ids[i], Installed: s.Installed, Version: s.Version, Dirty: s.Dirty,
			First: versions[0], Needed: versions[len(versions)-1],
		}
	}
	return schemas, nil
}

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
// installed is not an error. Fault: Invalid for a schema of another module.
func (db *DB) Purge(ctx context.Context, id okapi.Tenant) error {
	ctx = okapi.WithTenant(ctx, id)
	return db.runTx(ctx, db.conns.Ordinary, longTx, "dropping a schema", func(tx pgx.Tx) error {
		if err := db.schemaOf(id).Lock(ctx, tx); err != nil {
			return err
		}
		_, err := runStatement(ctx, tx, dropSchemaSQL)
		return err
	})
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
