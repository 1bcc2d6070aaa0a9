package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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

// write runs f, which writes, on a connection for locks. From then on the end of the
// caller does not stop f, because a cancelled statement costs the connection and leaves
// its outcome open.
func (db *DB) write(ctx context.Context, op string, f func(context.Context, *pgxpool.Conn) error) error {
	return db.writeOn(ctx, db.conns.Urgent, op, f)
}

// writeOn is write on a connection of a pool.
func (db *DB) writeOn(ctx context.Context, pool *pgxpool.Pool, op string, f func(context.Context, *pgxpool.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return toFault(op, fmt.Errorf("getting a connection: %w", err))
	}
	defer conn.Release()
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
func (db *DB) exec(ctx context.Context, pool *pgxpool.Pool, op, statement string, args ...any) (changed int, err error) {
	err = db.writeOn(ctx, pool, op, func(ctx context.Context, conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, statement, args...)
		changed = int(tag.RowsAffected())
		return err
	})
	return changed, err
}

// readRows returns what scan makes of each row of a statement that only reads.
func readRows[T any](ctx context.Context, db *DB, pool *pgxpool.Pool, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.conns.Read(ctx, func() (err error) {
		rows, _ := pool.Query(ctx, statement, args...) // a Query error surfaces in CollectRows
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, toFault(op, err)
}

// toFault is database.ToFault with the faults of lock_timeout.
func toFault(op string, err error) error {
	if code, _ := database.SQLState(err); code == database.LockNotAvailable {
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
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
