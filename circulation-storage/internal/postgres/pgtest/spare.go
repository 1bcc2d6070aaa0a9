package pgtest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/okapi"
)

// spares are the schemas that tests of this process have given back. Tests reach them in a
// variable only.
var spares spareSchemas

// spareSchemas are migrated schemas without a tenant. The next test that needs a tenant gets one of
// them, because all migrations take a hundred times as long as a rename.
type spareSchemas struct {
	mu   sync.Mutex
	free []schema
}

// schema is a migrated schema.
type schema struct {
	name string
	// rows are those that the migrations made: JSON arrays by table.
	rows map[string]string
	// catalog is the state of the schema's definition. Every change of it gives another value.
	catalog string
}

// install makes a tenant with a schema as the migrations leave it.
func (s *spareSchemas) install(ctx context.Context, db *postgres.DB, id okapi.Tenant) (schema, error) {
	name := postgres.SchemaName(id)
	got, found := s.pop()
	if !found {
		if err := db.Install(ctx, id); err != nil {
			return schema{}, err
		}
		return readSchema(ctx, db, name)
	}
	err := pgx.BeginFunc(ctx, db.Pool(), func(tx pgx.Tx) (err error) {
		if err := got.rename(ctx, tx, name); err != nil {
			return err
		}
		got.catalog, err = readCatalog(ctx, tx, name)
		return err
	})
	if err != nil {
		return schema{}, fmt.Errorf("renaming a spare schema to %s: %w", name, err)
	}
	return got, nil
}

// giveBack empties a tenant's schema and keeps it for another tenant. If the test has changed the
// definition of the schema, giveBack drops it.
func (s *spareSchemas) giveBack(ctx context.Context, db *postgres.DB, id okapi.Tenant, used schema) error {
	same := false
	err := pgx.BeginFunc(ctx, db.Pool(), func(tx pgx.Tx) error {
		catalog, err := readCatalog(ctx, tx, used.name)
		if same = err == nil && catalog == used.catalog; !same {
			return err
		}
		if err := used.reset(ctx, tx); err != nil {
			return err
		}
		return used.rename(ctx, tx, "spare_"+id.String())
	})
	if err != nil {
		return fmt.Errorf("emptying the schema %s: %w", used.name, err)
	}
	if !same {
		return db.Purge(ctx, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, used)
	return nil
}

func (s *spareSchemas) pop() (last schema, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return schema{}, false
	}
	last, s.free = s.free[n-1], s.free[:n-1]
	return last, true
}

// drop drops the spare schemas of a server that outlives the tests.
func (s *spareSchemas) drop(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for {
		spare, found := s.pop()
		if !found {
			return nil
		}
		if _, err := conn.Exec(ctx, `DROP SCHEMA `+spare.name+` CASCADE`); err != nil {
			return fmt.Errorf("dropping a spare schema: %w", err)
		}
	}
}

// readSchema reads what the migrations have made.
func readSchema(ctx context.Context, db *postgres.DB, name string) (schema, error) {
	made := schema{name: name, rows: map[string]string{}}
	err := pgx.BeginFunc(ctx, db.Pool(), func(tx pgx.Tx) (err error) {
		if made.catalog, err = readCatalog(ctx, tx, name); err != nil {
			return err
		}
		tables, err := listUsedTables(ctx, tx, name)
		if err != nil {
			return err
		}
		for _, table := range tables {
			var rows *string
			if err := tx.QueryRow(ctx, `SELECT json_agg(t)::text FROM `+quote(name, table)+` AS t`).Scan(&rows); err != nil {
				return err
			}
			if rows != nil {
				made.rows[table] = *rows
			}
		}
		return nil
	})
	if err != nil {
		return schema{}, fmt.Errorf("reading the schema %s: %w", name, err)
	}
	return made, nil
}

// catalogSQL makes one value of what defines a schema. The xmin of a row of the catalog is the
// transaction that wrote it. Statistics count too, because they change plans.
const catalogSQL = `
WITH of AS (SELECT oid, xmin::text AS x FROM pg_class WHERE relnamespace = to_regnamespace($1)),
part AS (
SELECT concat('schema ', oid, ' ', xmin) AS p FROM pg_namespace WHERE oid = to_regnamespace($1)
UNION ALL SELECT concat('relation ', oid, ' ', x) FROM of
UNION ALL SELECT concat('column ', attrelid, ' ', attnum, ' ', a.xmin) FROM of JOIN pg_attribute a ON attrelid = of.oid
UNION ALL SELECT concat('default ', d.oid, ' ', d.xmin) FROM of JOIN pg_attrdef d ON adrelid = of.oid
UNION ALL SELECT concat('constraint ', c.oid, ' ', c.xmin) FROM of JOIN pg_constraint c ON conrelid = of.oid
UNION ALL SELECT concat('trigger ', g.oid, ' ', g.xmin) FROM of JOIN pg_trigger g ON tgrelid = of.oid
UNION ALL SELECT concat('rule ', r.oid, ' ', r.xmin) FROM of JOIN pg_rewrite r ON ev_class = of.oid
UNION ALL SELECT concat('function ', oid, ' ', xmin) FROM pg_proc WHERE pronamespace = to_regnamespace($1)
UNION ALL SELECT concat('statistics ', tablename, ' ', attname) FROM pg_stats WHERE schemaname = $1)
SELECT coalesce(md5(string_agg(p, ',' ORDER BY p)), '') FROM part`

// readCatalog returns a value that every change of the schema's definition changes, "" if there is
// no schema.
func readCatalog(ctx context.Context, tx pgx.Tx, name string) (catalog string, err error) {
	err = tx.QueryRow(ctx, catalogSQL, name).Scan(&catalog)
	return catalog, err
}

// listUsedTables returns the tables that have pages, or whose identity column may have counted.
func listUsedTables(ctx context.Context, tx pgx.Tx, name string) ([]string, error) {
	rows, _ := tx.Query(ctx, `SELECT relname::text FROM pg_class c WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'
AND (pg_relation_size(c.oid) > 0 OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attidentity <> ''))`, name)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// reset gives the tables the rows that they have after the migrations. It truncates, so pages and
// numbers start again as well.
func (s schema) reset(ctx context.Context, tx pgx.Tx) error {
	used, err := listUsedTables(ctx, tx, s.name)
	if err != nil {
		return err
	}
	for i, table := range used {
		used[i] = quote(s.name, table)
	}
	if _, err := tx.Exec(ctx, `TRUNCATE `+strings.Join(used, ", ")+` RESTART IDENTITY CASCADE`); err != nil {
		return err
	}
	for table, rows := range s.rows {
		into := quote(s.name, table)
		_, err := tx.Exec(ctx, `INSERT INTO `+into+` SELECT * FROM json_populate_recordset(NULL::`+into+`, $1)`, rows)
		if err != nil {
			return err
		}
	}
	return nil
}

// rename renames the schema. The functions of the migrations name it in their search_path or body.
func (s *schema) rename(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `ALTER SCHEMA `+quote(s.name)+` RENAME TO `+quote(name)); err != nil {
		return err
	}
	old := s.name
	s.name = name
	rows, _ := tx.Query(ctx, `SELECT replace(pg_get_functiondef(oid), $2, $1)
FROM pg_proc WHERE pronamespace = to_regnamespace($1) AND strpos(pg_get_functiondef(oid), $2) > 0`, name, old)
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, strings.Join(statements, ";"), pgx.QueryExecModeSimpleProtocol)
	return err
}

func quote(name ...string) string { return pgx.Identifier(name).Sanitize() }
