// Package migrations holds database schemas as numbered SQL files: that of one tenant of
// circulation-storage, and that of resource-locks. README.md says what a migration may do.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// SQL holds the files sql/NNNN_name.{up,down}.sql. They name no schema, so they run with
// the tenant's as search_path.
//
//go:embed sql/*.sql
var SQL embed.FS

// ResourceLocks holds the files resourcelocks/NNNN_name.{up,down}.sql in the same way.
//
//go:embed resourcelocks/*.sql
var ResourceLocks embed.FS

// Latest returns the highest version of a tenant's schema.
func Latest() (uint, error) { return latest(SQL, "sql") }

// LatestResourceLocks returns the highest version of the schema of resource-locks.
func LatestResourceLocks() (uint, error) { return latest(ResourceLocks, "resourcelocks") }

func latest(files fs.FS, folder string) (uint, error) {
	names, err := fs.Glob(files, folder+"/*.up.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations found: %w", err)
	}
	last := strings.TrimPrefix(names[len(names)-1], folder+"/") // Glob sorts, and versions have four digits
	number, _, _ := strings.Cut(last, "_")
	version, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("migration %s has no version: %w", last, err)
	}
	return uint(version), nil
}
