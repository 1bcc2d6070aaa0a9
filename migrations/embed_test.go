package migrations_test

import (
	"fmt"
	"io/fs"
	"testing"

	"checkoutlock/migrations"
)

func TestEveryMigrationHasItsNumberAndItsWayBack(t *testing.T) {
	t.Parallel()
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	for n := uint(1); n <= latest; n++ {
		for _, direction := range []string{"up", "down"} {
			files, err := fs.Glob(migrations.SQL, fmt.Sprintf("sql/%04d_*.%s.sql", n, direction))
			if err != nil || len(files) != 1 {
				t.Errorf("migration %d has the %s files %v, want one (%v)", n, direction, files, err)
			}
		}
	}
}
