package testserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Spares are migrated schemas that tests of this process have given back. The next test that
// needs a schema gets one of them, because all migrations take a hundred times as long as a
// rename. The zero value has none. All schemas of one Spares have the same migrations and are in
// one database. Its methods may be called concurrently.
type Spares struct {
	mu   sync.Mutex
	free []Schema
}

// Schema is a migrated schema.
type Schema struct {
	name string
	// rows are those that the migrations made: JSON arrays by table.
	rows map[string]string
	// catalog is the state of the schema's definition since Install. Every change of it gives another
	// value.
	catalog string
}

// beginner is a connection, or a pool of them.
type beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// Install makes a schema of that name as the migrations leave it. It calls migrate only if there
// is no spare one.
func (s *Spares) Install(
	ctx context.Context, db beginner, name string, migrate func(context.Context) error,
) (Schema, error) {
	for {
		got, found := s.pop()
		if !found {
			break
		}
		usable, err := got.take(ctx, db, name)
		if err != nil {
			return Schema{}, fmt.Errorf("renaming a spare schema to %s: %w", name, err)
		}
		if usable {
			return got, nil
		}
	}
	if err := migrate(ctx); err != nil {
		return Schema{}, err
	}
	return readSchema(ctx, db, name)
}

// usableSQL is whether a schema exists, and none of its tables has statistics.
const usableSQL = `
WITH ` + membersSQL + `
SELECT to_regnamespace($1) IS NOT NULL AND NOT EXISTS (SELECT FROM described WHERE relkind = 'r' AND reltuples >= 0)`

// take renames a spare schema. If autovacuum has analyzed its empty tables, which changes plans, take
// drops it and returns false.
func (s *Schema) take(ctx context.Context, db beginner, name string) (usable bool, err error) {
	err = inTx(ctx, db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, usableSQL, s.name).Scan(&usable); err != nil {
			return err
		}
		if !usable {
			_, err := tx.Exec(ctx, `DROP SCHEMA IF EXISTS `+quote(s.name)+` CASCADE`)
			return err
		}
		if err := s.rename(ctx, tx, name); err != nil {
			return err
		}
		s.catalog, err = readCatalog(ctx, tx, name)
		return err
	})
	return usable, err
}

// GiveBack empties a schema and keeps it for another test. It calls drop instead if the test has
// changed the definition of the schema. A service that still runs may lock tables in another order:
// after a deadlock, GiveBack empties the schema again.
func (s *Spares) GiveBack(ctx context.Context, db beginner, used Schema, drop func(context.Context) error) error {
	spare, same, err := used.empty(ctx, db)
	for isDeadlock(err) && ctx.Err() == nil {
		spare, same, err = used.empty(ctx, db)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("emptying the schema %s: %w", used.name, err), drop(ctx))
	}
	if !same {
		return drop(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, spare)
	return nil
}

func isDeadlock(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == "40P01"
}

// empty makes a spare schema of s, which stays as it is. It does nothing, and returns false, if the
// definition of the schema has changed.
func (s Schema) empty(ctx context.Context, db beginner) (spare Schema, same bool, err error) {
	spare = s
	err = inTx(ctx, db, func(tx pgx.Tx) error {
		catalog, err := readCatalog(ctx, tx, s.name)
		if same = err == nil && catalog == s.catalog; !same {
			return err
		}
		if err := s.reset(ctx, tx); err != nil {
			return err
		}
		return spare.rename(ctx, tx, "spare_"+strings.ToLower(rand.Text()))
	})
	return spare, same, err
}

// Names returns the names of the spare schemas.
func (s *Spares) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(s.free))
	for i, spare := range s.free {
		names[i] = spare.name
	}
	return names
}

func (s *Spares) pop() (last Schema, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return Schema{}, false
	}
	last, s.free = s.free[n-1], s.free[:n-1]
	return last, true
}

// Drop drops the spare schemas of a server that outlives the tests.
func (s *Spares) Drop(ctx context.Context, url string) error {
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
		if _, err := conn.Exec(ctx, `DROP SCHEMA `+quote(spare.name)+` CASCADE`); err != nil {
			return fmt.Errorf("dropping a spare schema: %w", err)
		}
	}
}

// inTx runs f in a transaction. Each of its statements sees what others have committed.
func inTx(ctx context.Context, db beginner, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

// readSchema reads what the migrations have made.
func readSchema(ctx context.Context, db beginner, name string) (Schema, error) {
	made := Schema{name: name, rows: map[string]string{}}
	err := inTx(ctx, db, func(tx pgx.Tx) (err error) {
		if made.catalog, err = readCatalog(ctx, tx, name); err != nil {
			return err
		}
		small, large, err := listUsedTables(ctx, tx, name)
		if err != nil {
			return err
		}
		for _, table := range append(small, large...) {
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
		return Schema{}, fmt.Errorf("reading the schema %s: %w", name, err)
	}
	return made, nil
}

// membersSQL finds the relations of a schema by indexes alone. The catalog of a server that all tests
// share is large, and has no index of schemas.
const membersSQL = `
member AS MATERIALIZED (
SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1)),
described AS MATERIALIZED (
SELECT oid, pg_class.xmin, relname, relkind, reltuples FROM member JOIN pg_class ON oid = objid
WHERE classid = 'pg_class'::regclass)`

// catalogSQL makes one value of what defines a schema: how many rows of the catalog it has, and the
// latest transaction that wrote one of them. Statistics count too, because they change plans: a table
// without any has reltuples -1. The view pg_stats takes longer than all else here.
const catalogSQL = `
WITH ` + membersSQL + `,
written AS (
SELECT xmin FROM pg_namespace WHERE oid = to_regnamespace($1)
UNION ALL SELECT xmin FROM described
UNION ALL SELECT c.xmin FROM described d JOIN pg_index ON indrelid = d.oid JOIN pg_class c ON c.oid = indexrelid
UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid IN (SELECT oid FROM described)
UNION ALL SELECT xmin FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM described)
UNION ALL SELECT xmin FROM pg_constraint WHERE conrelid IN (SELECT oid FROM described)
UNION ALL SELECT xmin FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM described)
UNION ALL SELECT xmin FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM described)
UNION ALL SELECT pg_proc.xmin FROM member JOIN pg_proc ON oid = objid WHERE classid = 'pg_proc'::regclass)
SELECT CASE WHEN count(*) = 0 THEN '' ELSE concat_ws(' ', count(*), max(xmin::text::bigint),
       (SELECT count(*) FROM described WHERE relkind = 'r' AND reltuples >= 0)) END FROM written`

// readCatalog returns a value that every change of the schema's definition changes, "" if there is
// no schema.
func readCatalog(ctx context.Context, tx pgx.Tx, name string) (catalog string, err error) {
	err = tx.QueryRow(ctx, catalogSQL, name).Scan(&catalog)
	return catalog, err
}

// listUsedTables returns the tables that have pages. PostgreSQL plans for ten pages of a table that
// is empty; large ones have more. Without the right to turn triggers off, all are large.
func listUsedTables(ctx context.Context, tx pgx.Tx, schema string) (small, large []string, err error) {
	rows, _ := tx.Query(ctx, `WITH `+membersSQL+`
SELECT relname::text, pg_table_size(oid) > 10 * 8192 OR NOT current_setting('is_superuser')::boolean
  FROM described WHERE relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY oid`, schema)
	var name string
	var isLarge bool
	_, err = pgx.ForEachRow(rows, []any{&name, &isLarge}, func() error {
		if isLarge {
			large = append(large, name)
		} else {
			small = append(small, name)
		}
		return nil
	})
	return small, large, err
}

// reset gives the tables the rows that they have after the migrations, and lets numbers start again.
// It deletes the rows of small tables: to truncate them takes longer, and fills PostgreSQL's catalog.
func (s Schema) reset(ctx context.Context, tx pgx.Tx) error {
	small, large, err := listUsedTables(ctx, tx, s.name)
	if err != nil {
		return err
	}
	for _, tables := range [][]string{small, large} {
		for i, table := range tables {
			tables[i] = quote(s.name, table)
		}
	}
	// All tables get the rows that they had, so no trigger has to run.
	statements := []string{`SELECT set_config('session_replication_role', 'replica', true) WHERE current_setting('is_superuser')::boolean`}
	if len(small) > 0 { // waits for transactions that write rows
		statements = append(statements, `LOCK TABLE `+strings.Join(small, ", ")+` IN SHARE ROW EXCLUSIVE MODE`)
	}
	for _, table := range small {
		statements = append(statements, `DELETE FROM `+table)
	}
	if len(large) > 0 {
		statements = append(statements, `TRUNCATE `+strings.Join(large, ", ")+` CASCADE`)
	}
	_, err = tx.Exec(ctx, strings.Join(statements, ";"), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `WITH `+membersSQL+`
SELECT setval(seqrelid, seqstart, false) FROM described JOIN pg_sequence ON seqrelid = oid`, s.name)
	if err != nil {
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
// Neither name may contain the other one.
func (s *Schema) rename(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `ALTER SCHEMA `+quote(s.name)+` RENAME TO `+quote(name)); err != nil {
		return err
	}
	old := s.name
	s.name = name
	rows, _ := tx.Query(ctx, `WITH `+membersSQL+`
SELECT replace(pg_get_functiondef(objid), $2, $1)
  FROM member WHERE classid = 'pg_proc'::regclass AND strpos(pg_get_functiondef(objid), $2) > 0`, name, old)
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, strings.Join(statements, ";"), pgx.QueryExecModeSimpleProtocol)
	return err
}

func quote(name ...string) string { return pgx.Identifier(name).Sanitize() }
