package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"testing"

	"checkoutlock/migrations"
)

// folders are the schemas by their folder.
var folders = map[string]struct {
	files    fs.FS
	versions func() ([]uint, error)
}{
	"sql":           {files: migrations.SQL, versions: migrations.Versions},
	"resourcelocks": {files: migrations.ResourceLocks, versions: migrations.ResourceLocksVersions},
}

func TestMigrations_EachNumberHasUpAndDown(t *testing.T) {
	t.Parallel()
	for folder, f := range folders {
		versions, err := f.versions()
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range versions {
			if want := versions[0] + uint(i); n != want {
				t.Errorf("%s has migration %d in the place of %d", folder, n, want)
			}
			for _, direction := range []string{"up", "down"} {
				files, err := fs.Glob(f.files, fmt.Sprintf("%s/%04d_*.%s.sql", folder, n, direction))
				if err != nil || len(files) != 1 {
					t.Errorf("migration %d has the %s files %v, want one (%v)", n, direction, files, err)
				}
			}
		}
		names, err := fs.Glob(f.files, folder+"/*.sql")
		if err != nil || len(names) != 2*len(versions) {
			t.Errorf("%s has %d files, %v, want two for each of %d", folder, len(names), err, versions)
		}
	}
}

// noStatements matches comments, texts and function bodies. A BEGIN in them begins no
// transaction.
var noStatements = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\w*\$|'[^']*'`)

// ownTransaction matches statements that end the file's transaction, and those that
// PostgreSQL does not run in one.
var ownTransaction = regexp.MustCompile(
	`(?i)(?:^|;)\s*(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT|PREPARE\s+TRANSACTION|` +
		`VACUUM|ALTER\s+SYSTEM|(?:CREATE|DROP)\s+(?:DATABASE|TABLESPACE))\b|\bCONCURRENTLY\b`)

func TestMigrations_EachFileIsOneTransaction(t *testing.T) {
	t.Parallel()
	for folder, f := range folders {
		names, err := fs.Glob(f.files, folder+"/*.sql")
		if err != nil || len(names) == 0 {
			t.Fatalf("found %d files, %v", len(names), err)
		}
		for _, name := range names {
			checkTransaction(t, f.files, name)
		}
	}
}

func checkTransaction(t *testing.T, files fs.FS, name string) {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	if found := ownTransaction.FindString(noStatements.ReplaceAllString(string(text), "")); found != "" {
		t.Errorf("%s has %q, which cannot run in the transaction of its file", name, found)
	}
}

func TestMigrations_StatementsOutsideATransactionAreFound(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]bool{
		"CREATE TABLE t (a int); COMMIT;":                             true,
		"begin;\nCREATE TABLE t (a int);\nend;":                       true,
		"CREATE INDEX CONCURRENTLY i ON t (a)":                        true,
		"VACUUM t":                                                    true,
		"-- COMMIT;\nCREATE TABLE t (a int) -- VACUUM":                false,
		"CREATE FUNCTION f() RETURNS int AS $$ BEGIN; COMMIT; END $$": false,
		"COMMENT ON TABLE t IS '; COMMIT'":                            false,
		"ALTER TABLE t ADD COLUMN end_date date":                      false,
	} {
		if got := ownTransaction.MatchString(noStatements.ReplaceAllString(statement, "")); got != want {
			t.Errorf("%q: found %t, want %t", statement, got, want)
		}
	}
}
