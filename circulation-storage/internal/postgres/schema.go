package postgres

import (
	"context"
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
	rows, _ := db.pool.Query(ctx, installedSQL) // a Query error surfaces in CollectRows
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
	needed, err := migrations.Latest()
	if err != nil {
		return nil, err
	}
	read, err := db.readVersions(ctx, ids)
	if err != nil {
		return nil, toFault("reading the schema versions", err)
	}
	return judgeSchemas(ids, read, needed), nil
}

// Schema implements readiness.Schemas.
func (db *DB) Schema(ctx context.Context) (readiness.Schema, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return readiness.Schema{}, errNoTenant
	}
	needed, err := migrations.Latest()
	if err != nil {
		return readiness.Schema{}, err
	}
	ids := []okapi.Tenant{id}
	read, err := db.readVersions(ctx, ids)
	if missesTable(err) {
		return readiness.Schema{Tenant: id, Needed: needed}, nil
	}
	if err != nil {
		return readiness.Schema{}, toFault("reading the schema version", err)
	}
	return judgeSchemas(ids, read, needed)[0], nil
}

// schemaVersion is the row of one tenant's table of versions.
type schemaVersion struct {
	Tenant  string
	Version int64
	Dirty   bool
}

func (db *DB) readVersions(ctx context.Context, ids []okapi.Tenant) ([]schemaVersion, error) {
	rows, _ := db.pool.Query(ctx, versionsSQL(ids)) // a Query error surfaces in CollectRows
	return pgx.CollectRows(rows, pgx.RowToStructByPos[schemaVersion])
}

// versionsSQL reads the versions of all the tenants in one statement.
func versionsSQL(ids []okapi.Tenant) string {
	selects := make([]string, len(ids))
	for i, id := range ids { // an id is safe to quote, see okapi.ParseTenant
		selects[i] = "SELECT '" + id.String() + "' AS tenant, version, dirty FROM " +
			pgx.Identifier{SchemaName(id), database.VersionTable}.Sanitize()
	}
	return strings.Join(selects, " UNION ALL ")
}

// judgeSchemas returns the schemas of the tenants, all of which are installed. A tenant
// whose migrations were undone has no row.
func judgeSchemas(ids []okapi.Tenant, read []schemaVersion, needed uint) []readiness.Schema {
	versions := make(map[string]schemaVersion, len(read))
	for _, v := range read {
		versions[v.Tenant] = v
	}
	schemas := make([]readiness.Schema, len(ids))
	for i, id := range ids {
		v := versions[id.String()]
		version := uint(max(v.Version, 0)) // -1 stands for no migration
		schemas[i] = readiness.Schema{Tenant: id, Installed: true, Version: version, Dirty: v.Dirty, Needed: needed}
	}
	return schemas
}

// missesTable reports whether a statement named a table or a schema that does not exist.
func missesTable(err error) bool {
	code, _ := database.SQLState(err)
	return code == database.UndefinedTable || code == database.InvalidSchemaName
}
