package postgres

import "io/fs"

// UseMigrations replaces the migration files, which stand in a folder sql.
func (db *DB) UseMigrations(files fs.FS) { db.migrations = files }

// TenantOfSchema is tenantOfSchema.
var TenantOfSchema = tenantOfSchema
