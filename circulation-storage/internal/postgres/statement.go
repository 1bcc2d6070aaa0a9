package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/schemas/okapi"
)

// Marks in a statement: the tenant's quoted schema, and a record type's table in it.
const (
	schemaMark = "{schema}"
	tableMark  = "{table}"
)

// nameSchema puts the schema of ctx's tenant into a statement. Fault: Malformed
// without a tenant, as for a request without one.
func nameSchema(ctx context.Context, statement string) (string, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return "", errNoTenant
	}
	return strings.ReplaceAll(statement, schemaMark, pgx.Identifier{SchemaName(id)}.Sanitize()), nil
}

// nameTable puts a table of the tenant's schema into a statement.
func nameTable(statement, table string) string {
	return strings.ReplaceAll(statement, tableMark, schemaMark+"."+pgx.Identifier{table}.Sanitize())
}

// querier runs statements: a pool, one of its connections, or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// The next three functions run one statement in the schema of ctx's tenant. They return
// PostgreSQL's errors as they are, because runTx judges those of a transaction.

// runStatement returns how many rows the statement changed.
func runStatement(ctx context.Context, on querier, statement string, args ...any) (int, error) {
	statement, err := nameSchema(ctx, statement)
	if err != nil {
		return 0, err
	}
	tag, err := on.Exec(ctx, statement, args...)
	return int(tag.RowsAffected()), err
}

// scanRow reads the statement's only row into dest. It returns pgx.ErrNoRows without one.
func scanRow(ctx context.Context, on querier, statement string, args []any, dest ...any) error {
	statement, err := nameSchema(ctx, statement)
	if err != nil {
		return err
	}
	return on.QueryRow(ctx, statement, args...).Scan(dest...)
}

// collectRows returns what scan makes of each row.
func collectRows[T any](ctx context.Context, on querier, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	statement, err := nameSchema(ctx, statement)
	if err != nil {
		return nil, err
	}
	rows, _ := on.Query(ctx, statement, args...) // a Query error surfaces in CollectRows
	return pgx.CollectRows(rows, scan)
}

// The methods of DB run one statement outside a transaction, on the given pool, and
// turn errors into faults; op says what was being done. Those that write run once.
// Those that only read run again on a fresh connection if the first was lost.

// exec returns how many rows the statement changed.
func (db *DB) exec(ctx context.Context, pool *pgxpool.Pool, op, statement string, args ...any) (int, error) {
	n, err := runStatement(ctx, pool, statement, args...)
	return n, toFault(op, err)
}

// writeRow runs a statement that writes, and reads its only row into dest. The fault
// wraps pgx.ErrNoRows without one.
func (db *DB) writeRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return toFault(op, scanRow(ctx, pool, statement, args, dest...))
}

// readRow reads the statement's only row into dest. The fault wraps pgx.ErrNoRows
// without one.
func (db *DB) readRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return toFault(op, db.conns.Read(ctx, func() error { return scanRow(ctx, pool, statement, args, dest...) }))
}

// readRows returns what scan makes of each row.
func readRows[T any](ctx context.Context, db *DB, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.conns.Read(ctx, func() (err error) {
		found, err = collectRows(ctx, db.pool, statement, args, scan)
		return err
	})
	return found, toFault(op, err)
}

// readPage returns a page and the total, which is the first column of each row. An
// empty page is one row that is NULL in all columns but the first.
func readPage[T any](
	ctx context.Context, db *DB, op, statement string, args []any, scan func(row pgx.Row, total *int) (T, error),
) ([]T, int, error) {
	var total int
	page, err := readRows(ctx, db, op, statement, args, func(row pgx.CollectableRow) (*T, error) {
		columns := row.RawValues()
		if columns[1] == nil {
			return nil, row.Scan(append([]any{&total}, make([]any, len(columns)-1)...)...)
		}
		element, err := scan(row, &total)
		return &element, err
	})
	if err != nil {
		return nil, 0, err
	}
	var found []T
	for _, element := range page {
		if element != nil {
			found = append(found, *element)
		}
	}
	return found, total, nil
}

// nullable is SQL NULL for no id.
func nullable(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// optionalID reads NULL as uuid.Nil.
type optionalID uuid.UUID

// ScanUUID implements pgtype.UUIDScanner.
func (id *optionalID) ScanUUID(v pgtype.UUID) error {
	*id = v.Bytes
	return nil
}

// utcTime reads a timestamptz in UTC.
type utcTime time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *utcTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = utcTime(v.Time.UTC())
	return nil
}

// millis reads a number of milliseconds.
type millis time.Duration

// ScanInt64 implements pgtype.Int64Scanner.
func (d *millis) ScanInt64(v pgtype.Int8) error {
	*d = millis(time.Duration(v.Int64) * time.Millisecond)
	return nil
}
