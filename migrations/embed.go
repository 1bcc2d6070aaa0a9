// Package migrations holds database schemas as numbered SQL files: that of one tenant of
// circulation-storage, and that of resource-locks. README.md says what a migration may do.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
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

// Versions returns the versions of a tenant's schema in their order, one at least.
func Versions() ([]uint, error) { return listVersions(SQL, "sql") }

// ResourceLocksVersions returns those of the schema of resource-locks in the same way.
func ResourceLocksVersions() ([]uint, error) { return listVersions(ResourceLocks, "resourcelocks") }

func listVersions(files fs.FS, folder string) ([]uint, error) {
	names, err := fs.Glob(files, folder+"/*.up.sql")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no migrations found: %w", err)
	}
	versions := make([]uint, len(names))
	for i, name := range names { // Glob sorts, and versions have four digits
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no version: %w", name, err)
		}
		versions[i] = uint(version)
	}
	return versions, nil
}
