// Package migrations holds the database schema of one tenant as numbered SQL
// files. README.md says what a migration may do.
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

// Latest returns the highest version among the files.
func Latest() (uint, error) {
	files, err := fs.Glob(SQL, "sql/*.up.sql")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no migrations found: %w", err)
	}
	last := strings.TrimPrefix(files[len(files)-1], "sql/") // Glob sorts, and versions have four digits
	number, _, _ := strings.Cut(last, "_")
	version, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("migration %s has no version: %w", last, err)
	}
	return uint(version), nil
}
