package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

// Other tests' tenants come and go in the same database, so only what readiness
// says of the test's own counts.
func TestReady_SaysWhichTenantLacksWhat(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		statement string // %s is the table of versions
		says      string // "" is nothing
	}{
		"an installed tenant":            {"SELECT FROM %s", ""},
		"all migrations undone":          {"DELETE FROM %s", "the schema has no migrations"},
		"an installation under way":      {"DROP TABLE %s", "the schema has no migrations"},
		"tables of an older build":       {"UPDATE %s SET version = 1", "schema version is 1, this build needs"},
		"a migration that went half-way": {"UPDATE %s SET version = 2, dirty = true", "migration 2 failed half-way"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := pgtest.New(t)
			table := pgx.Identifier{id.Schema(), "schema_migrations"}.Sanitize()
			if _, err := db.Pool().Exec(t.Context(), fmt.Sprintf(tt.statement, table)); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(db.Ready(t.Context()))
			_, got, named := strings.Cut(got, "tenant "+id.String()+": ")
			if named != (tt.says != "") || !strings.HasPrefix(got, tt.says) {
				t.Errorf("readiness says %q of the tenant, want %q", got, tt.says)
			}
		})
	}
}
