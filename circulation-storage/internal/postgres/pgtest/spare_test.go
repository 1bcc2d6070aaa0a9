package pgtest

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/schemas/okapi"
)

// register has spare schemas of its own.
type register struct {
	*testing.T
	db     *postgres.DB
	spares testserver.Spares
}

// tenant is an installed tenant.
type tenant struct {
	id     okapi.Tenant
	name   string // of the schema
	schema testserver.Schema
}

func (r *register) install() tenant {
	r.Helper()
	id := Tenant(r.T)
	got, err := install(r.Context(), &r.spares, r.db, id)
	if err != nil {
		r.Fatal(err)
	}
	return tenant{id: id, name: postgres.SchemaName(id), schema: got}
}

func (r *register) giveBack(used tenant) {
	r.Helper()
	if err := giveBack(r.Context(), &r.spares, r.db, used.id, used.schema); err != nil {
		r.Fatal(err)
	}
}

// wantSpares fails the test unless there are so many spare schemas. It returns their names.
func (r *register) wantSpares(want int) []string {
	r.Helper()
	names := r.spares.Names()
	if len(names) != want {
		r.Errorf("got %d spare schemas, want %d", len(names), want)
	}
	return names
}

func (r *register) exec(s tenant, statements ...string) {
	r.Helper()
	for _, statement := range statements {
		if _, err := r.db.Pool().Exec(r.Context(), strings.ReplaceAll(statement, "S.", s.name+".")); err != nil {
			r.Fatal(err)
		}
	}
}

// readRows returns the rows of all tables.
func (r *register) readRows(s tenant) map[string]string {
	r.Helper()
	rows, _ := r.db.Pool().Query(r.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = $1`, s.name)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.Fatal(err)
	}
	all := map[string]string{}
	for _, table := range tables {
		var text string
		query := `SELECT coalesce(json_agg(t)::text, '') FROM ` + pgx.Identifier{s.name, table}.Sanitize() + ` AS t`
		if err := r.db.Pool().QueryRow(r.Context(), query).Scan(&text); err != nil {
			r.Fatal(err)
		}
		all[table] = text
	}
	return all
}

func TestSpareSchemas_AreAsTheMigrationsLeaveThem(t *testing.T) {
	t.Parallel()
	r := &register{T: t, db: open(t)}
	used := r.install()
	migrated := r.readRows(used)
	r.exec(used, `INSERT INTO S.usergroup (id, jsonb) VALUES (gen_random_uuid(), '{"group":"staff"}')`,
		`INSERT INTO S.loan (id, jsonb) VALUES (gen_random_uuid(), '{}')`,
		`SELECT nextval(pg_get_serial_sequence('S.outbox', 'id'))`,
		`UPDATE S.schema_migrations SET dirty = true`, `DELETE FROM S.circulation_rules`,
		`DELETE FROM S.lock_settings_version`)
	r.giveBack(used)
	if n := schemas(t, used.name); n != 0 {
		t.Errorf("given back: got %d schemas of the tenant, want none", n)
	}
	r.wantSpares(1)
	again := r.install()
	r.wantSpares(0)
	if got := r.readRows(again); !maps.Equal(got, migrated) {
		t.Errorf("got the rows\n%s\nwant\n%s", got, migrated)
	}
	var next int
	query := `SELECT nextval(pg_get_serial_sequence('` + again.name + `.outbox', 'id'))`
	if err := r.db.Pool().QueryRow(t.Context(), query).Scan(&next); err != nil || next != 1 {
		t.Errorf("the next number: got %d, %v, want 1", next, err)
	}
	r.exec(again, `INSERT INTO S.loan (id, jsonb) VALUES ('`+uuid.NewString()+`', '{}')`) // its trigger names the schema
	if got := r.readRows(again)["loan_history"]; got == "" {
		t.Error("the trigger wrote no history")
	}
	r.giveBack(again)
	spare := r.wantSpares(1)[0]
	if err := r.spares.Drop(t.Context(), URL(t)); err != nil || schemas(t, spare) != 0 {
		t.Errorf("dropping the spare schemas: got %v and %d schemas, want none", err, schemas(t, spare))
	}
}

func TestSpareSchemas_AChangedSchemaIsDropped(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]string{
		"a column":        {`ALTER TABLE S.loan ADD COLUMN more int`},
		"not null":        {`ALTER TABLE S.loan ALTER COLUMN jsonb DROP NOT NULL`},
		"a table":         {`CREATE TABLE S.more (id int)`},
		"a missing index": {`DROP INDEX S.loan_user_id_idx`},
		"a constraint":    {`ALTER TABLE S.loan ADD CONSTRAINT more CHECK (id IS NOT NULL)`},
		"a trigger":       {`ALTER TABLE S.loan DISABLE TRIGGER loan_history`},
		"a function":      {`ALTER FUNCTION S.record_time(text) COST 7`},
		"statistics":      {`ANALYZE S.circulation_rules`},
		"a right":         {`GRANT SELECT ON S.loan TO PUBLIC`},
		"no schema":       {`DO $$ BEGIN EXECUTE 'DROP SCHEMA ' || rtrim('S.', '.') || ' CASCADE'; END $$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &register{T: t, db: open(t)}
			used := r.install()
			r.exec(used, change...)
			r.giveBack(used)
			if n := schemas(t, used.name); n != 0 {
				t.Errorf("got %d schemas of the tenant, want none", n)
			}
			r.wantSpares(0)
		})
	}
}

// Autovacuum analyzes an emptied table because of the rows that it had.
func TestSpareSchemas_AnAnalyzedOneIsDropped(t *testing.T) {
	t.Parallel()
	r := &register{T: t, db: open(t)}
	r.giveBack(r.install())
	spare := r.wantSpares(1)[0]
	r.exec(tenant{name: spare}, `ANALYZE S.request`)
	again := r.install()
	if n := schemas(t, spare); n != 0 {
		t.Error("the spare schema is left")
	}
	var unknown bool
	query := `SELECT reltuples < 0 FROM pg_class WHERE oid = $1::text::regclass`
	if err := r.db.Pool().QueryRow(t.Context(), query, again.name+".request").Scan(&unknown); err != nil || !unknown {
		t.Errorf("the table has statistics, %v, want none", err)
	}
	r.giveBack(again)
	if err := r.spares.Drop(t.Context(), URL(t)); err != nil {
		t.Error(err)
	}
}

// A worker of the service has one table, and waits for another that the emptying has.
func TestSpareSchemas_OneIsEmptiedAfterADeadlock(t *testing.T) {
	t.Parallel()
	r := &register{T: t, db: open(t)}
	used := r.install()
	r.exec(used, `INSERT INTO S.usergroup (id, jsonb) VALUES (gen_random_uuid(), '{"group":"staff"}')`)
	tx, err := r.db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // does nothing if it has ended
	lock := func(table string) error {
		_, err := tx.Exec(t.Context(), `LOCK TABLE `+used.name+`.`+table+` IN ROW EXCLUSIVE MODE`)
		return err
	}
	if err := lock("circulation_rules"); err != nil {
		t.Fatal(err)
	}
	emptied := make(chan error, 1)
	go func() { emptied <- giveBack(t.Context(), &r.spares, r.db, used.id, used.schema) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	waits := `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted)`
	for waiting := false; !waiting; <-tick.C {
		if err := r.db.Pool().QueryRow(t.Context(), waits, used.name+".circulation_rules").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := lock("usergroup"); err != nil {
		t.Log(err) // PostgreSQL ended this transaction instead
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-emptied; err != nil {
		t.Fatal(err)
	}
	r.wantSpares(1)
	if err := r.spares.Drop(t.Context(), URL(t)); err != nil {
		t.Error(err)
	}
}
