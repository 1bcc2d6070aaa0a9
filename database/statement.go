package database

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// SchemaMark stands in a statement for the quoted schema of its tables. With their schema in
// their names, tables need no search_path, so PgBouncer's transaction mode works.
const SchemaMark = "{schema}"

// NameSchema puts the schema into a statement.
func NameSchema(schema, statement string) string {
	return strings.ReplaceAll(statement, SchemaMark, pgx.Identifier{schema}.Sanitize())
}

type namedKey struct{ schema, statement string }

// named is where a connection keeps statements with their schema, mostPrepared at most.
const named = "named"

// NameSchemaOn is NameSchema for a statement that runs often, in several schemas. A connection, also
// that of a transaction, keeps the result, because it is found faster than made.
func NameSchemaOn(on Querier, schema, statement string) string {
	connected, ok := on.(interface{ Conn() *pgx.Conn })
	if !ok {
		return NameSchema(schema, statement)
	}
	kept, key := textsOn(connected.Conn()), namedKey{schema, statement}
	if text, ok := kept[key]; ok {
		return text
	}
	if kept == nil || len(kept) == mostPrepared {
		kept = map[namedKey]string{}
		connected.Conn().PgConn().CustomData()[named] = kept
	}
	kept[key] = NameSchema(schema, statement)
	return kept[key]
}

// textsOn returns the statements with their schema that a connection keeps.
func textsOn(conn *pgx.Conn) map[namedKey]string {
	kept, _ := conn.PgConn().CustomData()[named].(map[namedKey]string)
	return kept
}

// Querier runs statements: a pool, one of its connections, or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Query runs one statement, whose schema is named, and gives its rows to read. bounds, of
// Bounds.Batched, go before it in the same round trip and transaction; "" leaves them out. It and the
// next functions return PostgreSQL's errors as they are.
func Query(ctx context.Context, on Querier, bounds, statement string, args []any, read func(pgx.Rows) error) error {
	if bounds != "" {
		var batch pgx.Batch
		batch.Queue(bounds)
		batch.Queue(statement, args...).Query(read)
		return on.SendBatch(ctx, &batch).Close()
	}
	rows, _ := on.Query(ctx, statement, args...) // its error is also that of the rows
	defer rows.Close()
	if err := read(rows); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// Exec returns how many rows the statement changed. Without bounds and args it may be several
// statements, where the last one counts.
func Exec(ctx context.Context, on Querier, bounds, statement string, args ...any) (changed int, err error) {
	if bounds == "" {
		tag, err := on.Exec(ctx, statement, args...)
		return int(tag.RowsAffected()), err
	}
	err = Query(ctx, on, bounds, statement, args, func(rows pgx.Rows) error {
		rows.Close()
		changed = int(rows.CommandTag().RowsAffected())
		return rows.Err()
	})
	return changed, err
}

// ScanRow reads the statement's only row into dest. It returns pgx.ErrNoRows without one.
func ScanRow(ctx context.Context, on Querier, bounds, statement string, args, dest []any) error {
	return Query(ctx, on, bounds, statement, args, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(dest...)
		})
		return err
	})
}

// CollectRows returns what scan makes of each row.
func CollectRows[T any](
	ctx context.Context, on Querier, bounds, statement string, args []any, scan pgx.RowToFunc[T],
) (found []T, err error) {
	err = Query(ctx, on, bounds, statement, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, err
}

// UTCTime reads a timestamptz in UTC, and NULL as the zero time.
type UTCTime time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *UTCTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = UTCTime(v.Time.UTC())
	return nil
}
