package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

const (
	// writeTimeout bounds a statement that writes, once it is sent.
	writeTimeout = 5 * time.Second
	// leastWriteTimeout is its bound for a caller with less time.
	leastWriteTimeout = time.Second
	// statementTimeout and readTimeout are PostgreSQL's own bounds.
	statementTimeout = 4 * time.Second
	readTimeout      = 30 * time.Second
	// attempts is how often a statement runs at most: PostgreSQL rolled it back, or another
	// one changed the row that it had read.
	attempts = 10
)

// onPrimary ends the bounds of statements that only read. A standby, whose state may be old, refuses
// them with an error that counts as an outage.
const onPrimary = `, pg_current_wal_lsn()`

// The first statement of each batch sets time-outs of PostgreSQL for the batch's
// transaction, also through PgBouncer. So no statement of a process that has frozen goes on.
var (
	bounds = database.Bounds{Statement: statementTimeout, Lock: 2 * time.Second}.Batched()

	// writeBounds is for a statement that sets its wait for a row by itself.
	writeBounds = database.Bounds{Statement: statementTimeout}.Batched()

	// lazyBounds is bounds for a transaction that may end before its WAL is on disk.
	lazyBounds = database.Bounds{Statement: statementTimeout, Lock: 2 * time.Second, NotDurable: true}.Batched()

	// claimBounds is lazyBounds for a statement that looks among all claims. The planner knows
	// little of them, because they come and go.
	claimBounds = database.Bounds{
		Statement: statementTimeout, Lock: 2 * time.Second, NotDurable: true, OnlyIndexes: true,
	}.Batched()
	// claimReadBounds is claimBounds for a statement that only reads.
	claimReadBounds = database.Bounds{Statement: readTimeout, OnlyIndexes: true}.Batched() + onPrimary

	// readBounds is for a statement that only reads behind PgBouncer. Its caller waits for
	// less. Without PgBouncer, the session has that time-out already, and leads to no standby.
	readBounds = database.Bounds{Statement: readTimeout}.Batched() + onPrimary
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
	return toFault(op, db.writeWith(ctx, conn, op, func() error { return f(ctx, conn) }))
}

// writeWith runs f, which writes on the connection. It runs f again after a rollback by
// PostgreSQL.
func (db *DB) writeWith(ctx context.Context, conn *pgxpool.Conn, op string, f func() error) error {
	return db.conns.Repeat(ctx, attempts, op, func() error { return db.conns.Confirm(conn, writeTimeout, f) })
}

// exec writes by a statement, and returns how many rows it changed.
func (db *DB) exec(ctx context.Context, on connections, op, bounds, statement string, args ...any) (changed int, err error) {
	err = db.write(ctx, on, op, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		changed, err = database.Exec(ctx, conn, bounds, db.nameSchema(conn, statement), args...)
		return err
	})
	return changed, err
}

// sendBatch sends statements in one round trip and one transaction.
func (db *DB) sendBatch(ctx context.Context, conn *pgxpool.Conn, batch *pgx.Batch) error {
	var once pgx.Batch // of this try, because pgx cannot send a batch twice
	for _, q := range batch.QueuedQueries {
		once.Queue(db.nameSchema(conn, q.SQL), q.Arguments...).Fn = q.Fn
	}
	return conn.SendBatch(ctx, &once).Close()
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
		return database.ScanRow(ctx, conn, db.readBounds, db.nameSchema(conn, statement), args, dest)
	}))
}

// readRows returns what scan makes of each row of a statement that only reads.
func readRows[T any](ctx context.Context, db *DB, on connections, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.read(ctx, on, func(conn *pgxpool.Conn) (err error) {
		found, err = database.CollectRows(ctx, conn, db.readBounds, db.nameSchema(conn, statement), args, scan)
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
