package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/migrations"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// describeSchemaSQL lists what a schema has: columns, constraints, indexes, triggers, functions and
// views.
const describeSchemaSQL = `
WITH of AS (SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = to_regnamespace($1))
SELECT relname || '.' || attname || ' ' || format_type(atttypid,
atttypmod) || ' ' || attnotnull || ' ' || coalesce(pg_get_expr(adbin, adrelid), '')
  FROM of JOIN pg_attribute a ON attrelid = of.oid LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
 WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v')
UNION ALL SELECT relname || ' ' || conname || ' ' || pg_get_constraintdef(c.oid)
FROM of JOIN pg_constraint c ON conrelid = of.oid
UNION ALL SELECT pg_get_indexdef(oid) FROM of WHERE relkind = 'i'
UNION ALL SELECT pg_get_triggerdef(g.oid) FROM of JOIN pg_trigger g ON tgrelid = of.oid WHERE NOT tgisinternal
UNION ALL SELECT pg_get_viewdef(oid) FROM of WHERE relkind = 'v'
UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = to_regnamespace($1)
ORDER BY 1`

func TestMigrations_DownUndoesUp(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	schema := postgres.SchemaName(id)
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	run := func(statement string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%.100s: %v", statement, err)
		}
	}
	step := func(version uint, direction string) string {
		t.Helper()
		names, err := fs.Glob(migrations.SQL, fmt.Sprintf("sql/%04d_*.%s.sql", version, direction))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		text, err := fs.ReadFile(migrations.SQL, names[0])
		if err != nil {
			t.Fatal(err)
		}
		run(string(text))
		rows, _ := tx.Query(t.Context(), describeSchemaSQL, schema) // a Query error surfaces in CollectRows
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	run("CREATE SCHEMA " + schema)
	run("SET LOCAL search_path TO " + schema)
	before := ""
	for _, version := range listVersions(t) {
		up := step(version, "up")
		if down := step(version, "down"); down != before {
			t.Errorf("%d down: %s", version, compareLines(before, down))
		}
		if again := step(version, "up"); again != up {
			t.Errorf("%d up after down: %s", version, compareLines(up, again))
		}
		before = up
	}
}

// compareLines returns the lines that only one of the texts has.
func compareLines(want, got string) string {
	var b strings.Builder
	for _, side := range [...]struct{ name, of, other string }{
		{name: "missing", of: want, other: got}, {name: "left", of: got, other: want},
	} {
		for line := range strings.Lines(side.of + "\n") {
			if !strings.Contains(side.other+"\n", line) {
				b.WriteString("\n" + side.name + " " + strings.TrimSpace(line))
			}
		}
	}
	return b.String()
}

func TestSchema_OfAnotherModuleIsLeftAlone(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx, schema := okapi.WithTenant(t.Context(), id), postgres.SchemaName(id)
	if _, err := db.Pool().Exec(ctx, "CREATE SCHEMA "+schema+"; CREATE TABLE "+schema+".loan (id uuid)"); err != nil {
		t.Fatal(err)
	}
	_, _, began := postgres.NewTenantJobStore(db).Begin(ctx, tenantjob.Lease{}, tenantjob.Attributes{})
	for what, err := range map[string]error{
		"a job": began, "migrate": db.Install(ctx, id), "undoing": db.MigrateDown(ctx, id),
		"repair": db.Repair(ctx, id), "purge": db.Purge(ctx, id),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want %s", what, err, fault.Invalid)
		}
	}
	if _, err := db.Pool().Exec(ctx, "DROP TABLE "+schema+".loan; DROP SCHEMA "+schema); err != nil {
		t.Errorf("the schema is not as it was: %v", err)
	}
}
