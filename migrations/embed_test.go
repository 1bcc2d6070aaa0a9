package migrations_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"checkoutlock/migrations"
)

func TestEveryMigrationHasItsNumberAndItsWayBack(t *testing.T) {
	t.Parallel()
	all, err := fs.Glob(migrations.SQL, "sql/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		number, _, _ := strings.Cut(name, "_")
		if !regexp.MustCompile(`^sql/\d{4}$`).MatchString(number) {
			t.Errorf("%s does not begin with four digits", name)
		}
		for _, direction := range []string{"up", "down"} {
			files, err := fs.Glob(migrations.SQL, number+"_*."+direction+".sql")
			if err != nil || len(files) != 1 {
				t.Errorf("migration %s has the %s files %v, want one (%v)", number, direction, files, err)
			}
		}
	}
}
