package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commitAttempts is how often a transaction runs that PostgreSQL ended with a
// deadlock or a serialization failure.
const commitAttempts = 4

const (
	// rollbackTimeout bounds the rollback that follows a cancelled request.
	rollbackTimeout = 5 * time.Second
	// commitTimeout bounds a COMMIT, which waits for the synchronous standby if there
	// is one. It does not end with the request: PostgreSQL answers a cancelled wait by
	// making the transaction visible without the standby.
	commitTimeout = 5 * time.Second
	// longIdleTimeout is the idleTimeout of work that is not on the way of check-outs.
	longIdleTimeout = time.Minute
	// longStatement bounds a statement whose caller has no deadline.
	longStatement = 5 * time.Minute
)

// txBounds are the time-outs that PostgreSQL itself keeps in a transaction. Without
// them, a process that freezes between two statements keeps its row locks until it
// wakes up.
type txBounds struct {
	idle time.Duration // between two statements
	lock time.Duration // one wait for a lock
}

var (
	// shortTx is for all that touches locks, loans, items, requests and settings.
	shortTx = txBounds{idle: 3 * time.Second, lock: 5 * time.Second}
	// forceTx is for a person who waits for the answer: longer than a frozen commit
	// lives, shorter than 5 s.
	forceTx = txBounds{idle: 3 * time.Second, lock: 4 * time.Second}
	// longTx is for creating and dropping schemas.
	longTx = txBounds{idle: longIdleTimeout, lock: longStatement}
)

// beginSQL begins a READ COMMITTED transaction with its time-outs, in one round
// trip. They are local to the transaction, so they work behind PgBouncer too. A
// statement may run until the caller's deadline.
func (b txBounds) beginSQL(ctx context.Context) string {
	statement := longStatement
	if deadline, ok := ctx.Deadline(); ok {
		statement = max(0, min(statement, time.Until(deadline))) + statementMargin
	}
	return "BEGIN ISOLATION LEVEL READ COMMITTED" +
		"; SET LOCAL idle_in_transaction_session_timeout = " + milliseconds(b.idle) +
		"; SET LOCAL lock_timeout = " + milliseconds(b.lock) +
		"; SET LOCAL statement_timeout = " + milliseconds(statement)
}

// inTx runs fn in one transaction on the connections for lending. It commits when
// fn returns nil and rolls back otherwise, even when ctx is already cancelled. fn
// runs again after a deadlock, a serialization failure, or an end by PostgreSQL
// because this process stood still; so it must not keep state across calls.
//
// fn must not call another service: a transaction held open across a network
// call holds its row locks for as long as the other side likes.
//
// Fault: Timeout when the COMMIT got no answer in time. The transaction may be
// committed then.
func (db *DB) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.runTx(ctx, db.lending, shortTx, op, fn)
}

func (db *DB) runTx(ctx context.Context, pool *pgxpool.Pool, b txBounds, op string, fn func(pgx.Tx) error) error {
	var err error
	for range commitAttempts {
		if err = db.tryTx(ctx, pool, b, fn); err == nil || !retryable(err) || ctx.Err() != nil {
			break
		}
		db.log.DebugContext(ctx, "transaction runs again", "op", op, "err", err)
	}
	if lost(err) {
		db.resetPools()
	}
	return toFault(op, err)
}

func (db *DB) tryTx(ctx context.Context, pool *pgxpool.Pool, b txBounds, fn func(pgx.Tx) error) error {
	var conn *pgxpool.Conn
	var tx pgx.Tx
	err := db.read(ctx, func() (err error) { // a BEGIN that is lost has changed nothing
		conn, tx, err = begin(ctx, pool, b)
		return err
	})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer conn.Release() // after commit, which looks at the connection once more
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // does nothing after Commit
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // nothing is committed for a caller that left before
	}
	return commitTx(ctx, tx)
}

// begin starts a transaction on a connection that the caller releases.
func begin(ctx context.Context, pool *pgxpool.Pool, b txBounds) (*pgxpool.Conn, pgx.Tx, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: b.beginSQL(ctx)})
	if err != nil {
		conn.Release()
		return nil, nil, err
	}
	return conn, tx, nil
}

// commitTx ends the transaction. The caller still has its connection then, because the
// pool may give one that was released to another transaction. An error leaves open
// whether the transaction is committed, unless PostgreSQL says that it rolled back.
func commitTx(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	conn := tx.Conn().PgConn()
	takeUnconfirmed(conn) // an earlier statement of its own may have left it
	err := tx.Commit(ctx)
	if takeUnconfirmed(conn) {
		err = errors.Join(errUnconfirmed, err)
	}
	if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}
