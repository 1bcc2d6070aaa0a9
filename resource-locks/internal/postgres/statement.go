package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

const (
	// writeTimeout bounds a statement that writes, once it is sent.
	writeTimeout = 5 * time.Second
	// leastWriteTimeout is its bound for a caller with less time.
	leastWriteTimeout = time.Second
	// attempts is how often a statement runs at most: PostgreSQL rolled it back, or another
	// one changed the row that it had read.
	attempts = 10
)

// The first statement of each batch sets time-outs of PostgreSQL for the batch's
// transaction, also through PgBouncer. So no statement of a process that has frozen goes on.
const (
	bounds = writeBounds + `, set_config('lock_timeout', '2s', true)`

	// writeBounds is for a statement that sets its wait for a row by itself.
	writeBounds = `SELECT set_config('statement_timeout', '4s', true)`

	// lazyBounds is bounds for a transaction that may end before its WAL is on disk.
	lazyBounds = bounds + `, set_config('synchronous_commit', 'off', true)`

	// readBounds is for a statement that only reads behind PgBouncer. Its caller waits for
	// less. Without PgBouncer, the session has that time-out already.
	readBounds = `SELECT set_config('statement_timeout', '30s', true)`
)

// write runs f, which writes. Once f has a connection, the end of the caller does not stop
// it, because a cancelled statement costs the connection and leaves its outcome open.
func (db *DB) write(ctx context.Context, on connections, op string, f func(context.Context, *pgxpool.Conn) error) error {
	conn, err := on.acquire(ctx)
	if err != nil {
		return toFault(op, err)
	}
	defer on.release(conn)
	bound := writeTimeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(max(time.Until(deadline), leastWriteTimeout), writeTimeout)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	return toFault(op, db.writeWith(conn, func() error { return f(ctx, conn) }))
}

// writeWith runs f, which writes on the connection. It runs f again after a rollback by
// PostgreSQL.
func (db *DB) writeWith(conn *pgxpool.Conn, f func() error) (err error) {
	for range attempts {
		database.TakeUnconfirmed(conn.Conn().PgConn()) // an earlier statement may have left a mark
		err = f()
		if database.TakeUnconfirmed(conn.Conn().PgConn()) {
			err = database.ErrUnconfirmed
			break
		}
		code, _ := database.SQLState(err)
		if code != database.SerializationFailure && code != database.DeadlockDetected {
			break
		}
	}
	if database.ConnectionLost(err) {
		db.conns.Reset()
	}
	return err
}

// exec writes by a statement, and returns how many rows it changed.
func (db *DB) exec(ctx context.Context, on connections, op, bounds, statement string, args ...any) (changed int, err error) {
	err = db.write(ctx, on, op, func(ctx context.Context, conn *pgxpool.Conn) error {
		var batch pgx.Batch
		batch.Queue(bounds)
		batch.Queue(statement, args...).Exec(func(tag pgconn.CommandTag) error {
			changed = int(tag.RowsAffected())
			return nil
		})
		return conn.SendBatch(ctx, &batch).Close()
	})
	return changed, err
}

// scanRow runs a statement and reads its only row into dest. It returns pgx.ErrNoRows
// without one. No bounds leaves those of the session.
func scanRow(ctx context.Context, conn *pgxpool.Conn, bounds, statement string, args, dest []any) error {
	if bounds == "" {
		return conn.QueryRow(ctx, statement, args...).Scan(dest...)
	}
	var batch pgx.Batch
	batch.Queue(bounds)
	batch.Queue(statement, args...).QueryRow(func(row pgx.Row) error { return row.Scan(dest...) })
	return conn.SendBatch(ctx, &batch).Close()
}

// collectRows runs a statement like scanRow, and returns what scan makes of each row.
func collectRows[T any](ctx context.Context, conn *pgxpool.Conn, bounds, statement string, args []any, scan pgx.RowToFunc[T]) (found []T, err error) {
	if bounds == "" {
		rows, _ := conn.Query(ctx, statement, args...) // a Query error surfaces in CollectRows
		return pgx.CollectRows(rows, scan)
	}
	var batch pgx.Batch
	batch.Queue(bounds)
	batch.Queue(statement, args...).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, conn.SendBatch(ctx, &batch).Close()
}

// read runs f, which only reads. It runs f again if the connection was lost.
func (db *DB) read(ctx context.Context, on connections, f func(*pgxpool.Conn) error) error {
	return db.conns.Read(ctx, func() error {
		conn, err := on.acquire(ctx)
		if err != nil {
			return err
		}
		defer on.release(conn)
		return f(conn)
	})
}

// readRow reads the only row of a statement into dest. The fault wraps pgx.ErrNoRows
// without one.
func (db *DB) readRow(ctx context.Context, on connections, op, statement string, args, dest []any) error {
	return toFault(op, db.read(ctx, on, func(conn *pgxpool.Conn) error {
		return scanRow(ctx, conn, db.readBounds, statement, args, dest)
	}))
}

// readRows returns what scan makes of each row of a statement that only reads.
func readRows[T any](ctx context.Context, db *DB, on connections, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.read(ctx, on, func(conn *pgxpool.Conn) (err error) {
		found, err = collectRows(ctx, conn, db.readBounds, statement, args, scan)
		return err
	})
	return found, toFault(op, err)
}

// toFault is database.ToFault with the faults of lock_timeout and of a schema that is not
// complete.
func toFault(op string, err error) error {
	switch code, _ := database.SQLState(err); code {
	case database.LockNotAvailable:
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case database.InvalidSchemaName, database.UndefinedTable, database.UndefinedColumn:
		return fault.Wrap(err, fault.Unavailable, "The schema is not complete, found while %s: run resource-locks migrate", op)
	}
	return database.ToFault(op, err)
}

// errBusy is a row that others changed in all attempts.
var errBusy = fault.New(fault.Timeout, "timed out, because other calls changed the lock all the time")

// utcTime reads a timestamptz in UTC, and NULL as the zero time.
type utcTime time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *utcTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = utcTime{}
	if v.Valid {
		*t = utcTime(v.Time.UTC())
	}
	return nil
}
