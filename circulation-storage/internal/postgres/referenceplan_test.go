package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

// scannedReferences are references from small tables, and those from items that name one of few
// types: each check-out writes its item, and with it all indexes of items.
var scannedReferences = []string{
	"loan_policy.loansPolicy.fixedDueDateScheduleId", "loan_policy.renewalsPolicy.alternateFixedDueDateScheduleId",
	"location.institutionId", "location.campusId", "location.libraryId",
	"item.materialTypeId", "item.permanentLoanTypeId",
}

// A DELETE looks for what names its record as this test does.
func TestReferences_AreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, typ := range records.Types() {
		for _, ref := range typ.References {
			name, table, column := typ.Table+"."+ref.Field, typ.Table, typ.Indexes[ref.Field].Column
			if ref.To == "addresstype" {
				continue // see TestReferences_AddressTypesAreFoundByAnIndex
			}
			if ref.Links != "" {
				table, column = ref.Links, "target_id"
			}
			plan := l.explainRead(t, "SELECT FROM S."+table+" WHERE "+column+" = $1", uuid.NewString())
			if scanned := strings.Contains(plan, "Seq Scan"); scanned != slices.Contains(scannedReferences, name) {
				t.Errorf("%s:\n%s", name, plan)
			}
		}
	}
}

// explainRead returns the plan of a statement on tables that PostgreSQL takes for large.
func (l library) explainRead(t *testing.T, statement string, args ...any) (plan string) {
	t.Helper()
	l.withoutScans(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		plan, err = explainOn(ctx, tx, l.sql(statement), args...)
		return err
	})
	return plan
}

// queries is a pool or a transaction.
type queries interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// explainOn returns the plan of a statement.
func explainOn(ctx context.Context, on queries, statement string, args ...any) (string, error) {
	rows, _ := on.Query(ctx, "EXPLAIN "+statement, args...) // a Query error surfaces in CollectRows
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

func TestReferences_AddressTypesAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	home, work := l.create(t, records.AddressType, object{"addressType": "1"}).ID(), l.create(t, records.AddressType,
		object{"addressType": "2"}).ID()
	l.executeStatements(t, `INSERT INTO S.users (id, jsonb) SELECT id, jsonb_build_object('id', id, 'personal',
		jsonb_build_object('addresses',
		jsonb_build_array(jsonb_build_object('addressTypeId', '`+strings.ToUpper(home)+
		`')))) FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1000)) AS new`,
		`ANALYZE S.users`)
	for id, message := range map[string]string{home: "still referenced from table users. The user ", work: ""} {
		l.withoutScans(t, func(ctx context.Context, tx pgx.Tx) error {
			before, err := countScans(ctx, tx, l.sql("S."))
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "SAVEPOINT deletion"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, l.sql("DELETE FROM S.addresstype WHERE id = $1"), id); (err != nil) != (message != "") {
				t.Errorf("DELETE of %s: got %v", id, err)
			}
			if _, err := tx.Exec(ctx, "ROLLBACK TO deletion"); err != nil {
				return err
			}
			after, err := countScans(ctx, tx, l.sql("S."))
			if after != before {
				t.Errorf("DELETE of %s read whole tables %d times", id, after-before)
			}
			return err
		})
		err := l.store.Delete(l.in(t), records.AddressType, id)
		if (err != nil) != (message != "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("DELETE of %s: got %v, want %q", id, err, message)
		}
	}
}

// countScans counts how often this session has read users or requests of a schema as a whole.
func countScans(ctx context.Context, tx pgx.Tx, schema string) (scans int, err error) {
	err = tx.QueryRow(ctx, `SELECT sum(seq_scan) FROM pg_stat_xact_user_tables WHERE schemaname || '.' = $1 AND relname `+
		`IN ('users', 'request')`, schema).Scan(&scans)
	return scans, err
}

// withoutScans runs fn in a transaction that reads no table as a whole if an index serves, as with
// large tables, and rolls it back.
func (l library) withoutScans(t *testing.T, fn func(context.Context, pgx.Tx) error) {
	t.Helper()
	tx, err := l.db.Pool().Begin(l.in(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(l.in(t)) }()
	if _, err = tx.Exec(l.in(t), `SET LOCAL enable_seqscan = off`); err == nil {
		err = fn(l.in(t), tx)
	}
	if err != nil {
		t.Fatal(err)
	}
}
