package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// tableMark stands in a statement for a record type's table in the tenant's schema.
const tableMark = "{table}"

// nameSchema puts the schema of ctx's tenant into a statement that runs on a connection. Fault:
// Malformed without a tenant, as for a request without one.
func nameSchema(ctx context.Context, on database.Querier, statement string) (string, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return "", errNoTenant
	}
	return database.NameSchemaOn(on, SchemaName(id), statement), nil
}

// nameTable puts a table of the tenant's schema into a statement.
func nameTable(statement, table string) string {
	return strings.ReplaceAll(statement, tableMark, database.SchemaMark+"."+pgx.Identifier{table}.Sanitize())
}

// The next three functions run one statement in the schema of ctx's tenant. They return
// PostgreSQL's errors as they are, because runTx judges those of a transaction.

// runStatement returns how many rows the statement changed.
func runStatement(ctx context.Context, on database.Querier, statement string, args ...any) (int, error) {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return 0, err
	}
	return database.Exec(ctx, on, "", statement, args...)
}

// scanRow reads the statement's only row into dest. It returns pgx.ErrNoRows without one.
func scanRow(ctx context.Context, on database.Querier, statement string, args []any, dest ...any) error {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return err
	}
	return database.ScanRow(ctx, on, "", statement, args, dest)
}

// collectRows returns what scan makes of each row.
func collectRows[T any](ctx context.Context, on database.Querier, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return nil, err
	}
	return database.CollectRows(ctx, on, "", statement, args, scan)
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

// lookUpSQL goes before a statement that finds rows by indexes, whatever the parameters. Its plan is
// made once a connection. By its own choice PostgreSQL makes five plans before, and each tenant has
// statements of its own: with many tenants that takes longer than to run them.
var lookUpSQL = database.Bounds{PlansOnce: true}.Batched()

// lookUp is scanRow for such a statement.
func lookUp(ctx context.Context, on database.Querier, statement string, args []any, dest ...any) error {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return err
	}
	return database.ScanRow(ctx, on, lookUpSQL, statement, args, dest)
}

// lookUpRow is readRow for such a statement.
func (db *DB) lookUpRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return toFault(op, db.conns.Read(ctx, func() error { return lookUp(ctx, pool, statement, args, dest...) }))
}

// seldom goes before the parameters of a statement that runs once a minute or less for each tenant.
// PostgreSQL keeps it no longer than it runs. Else each connection would have those of all tenants.
const seldom = pgx.QueryExecModeExec

// readRows returns what scan makes of each row.
func readRows[T any](ctx context.Context, db *DB, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.conns.Read(ctx, func() (err error) {
		found, err = collectRows(ctx, db.conns.Ordinary, statement, args, scan)
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

// folioTime reads a timestamptz as answers have it, and NULL as no text.
type folioTime string

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *folioTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = ""
	if v.Valid {
		*t = folioTime(v.Time.UTC().Format(schemas.FolioTime))
	}
	return nil
}

// millis reads a number of milliseconds.
type millis time.Duration

// ScanInt64 implements pgtype.Int64Scanner.
func (d *millis) ScanInt64(v pgtype.Int8) error {
	*d = millis(time.Duration(v.Int64) * time.Millisecond)
	return nil
}
