package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/database"
	"checkoutlock/migrations"
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
// is empty or another module's, such as FOLIO's own of the same name.
const installedSQL = `
SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE c.relname = '` + database.VersionTable + `' ORDER BY n.nspname`

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
	states, err := db.conns.ReadSchemas(ctx, schemaNames(ids)...)
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
		return readiness.Schema{}, errNoTenant
	}
	ids := []okapi.Tenant{id}
	states, err := db.conns.ReadSchemas(ctx, schemaNames(ids)...)
	if err != nil {
		return readiness.Schema{}, toFault("reading the schema version", err)
	}
	schemas, err := compareSchemas(ids, states)
	if err != nil {
		return readiness.Schema{}, err
	}
	return schemas[0], nil
}

func schemaNames(ids []okapi.Tenant) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = SchemaName(id)
	}
	return names
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
