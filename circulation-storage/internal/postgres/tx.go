package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
)

// commitAttempts is how often a transaction runs at most. See retryable for the errors
// after which it runs again.
const commitAttempts = 4

const (
	// rollbackTimeout bounds the rollback that follows a cancelled request.
	rollbackTimeout = 5 * time.Second
	// commitTimeout bounds a COMMIT, which waits for the synchronous standby if there
	// is one. The end of the request does not cancel it: after a cancelled wait,
	// PostgreSQL makes the transaction visible without the standby.
	commitTimeout = 5 * time.Second
	// longStatement bounds a statement whose caller has no deadline.
	longStatement = 5 * time.Minute
)

// txBounds are the time-outs that PostgreSQL enforces in a transaction. Without them, a
// process that freezes between two statements keeps its row locks until it wakes up.
type txBounds struct {
	idle time.Duration // between two statements
	lock time.Duration // one wait for a lock
	// plansOnce makes PostgreSQL plan each statement once a connection. By its own choice it plans
	// the recount for nearly every check-out, which takes longer than to count.
	plansOnce bool
}

var (
	// shortTx is for locks, loans, items, requests and settings.
	shortTx = txBounds{idle: 3 * time.Second, lock: 5 * time.Second}
	// urgentTx is for transactions whose statements find rows by indexes, whatever the parameters.
	urgentTx = txBounds{idle: shortTx.idle, lock: shortTx.lock, plansOnce: true}
	// forceTx is for an operator who waits for the answer: longer than a frozen commit
	// lives, shorter than 5 s.
	forceTx = txBounds{idle: 3 * time.Second, lock: 4 * time.Second}
	// longTx is for creating and dropping schemas.
	longTx = txBounds{idle: time.Minute, lock: longStatement}
)

// beginSQL begins a READ COMMITTED transaction with its settings, in one round trip.
// They are local to the transaction, so they also work through PgBouncer. A statement
// may run until the caller's deadline.
func (b txBounds) beginSQL(ctx context.Context) string {
	statement := longStatement
	if deadline, ok := ctx.Deadline(); ok {
		statement = max(0, min(statement, time.Until(deadline))) + database.StatementMargin
	}
	settings := "BEGIN ISOLATION LEVEL READ COMMITTED" +
		"; SET LOCAL idle_in_transaction_session_timeout = " + database.Milliseconds(b.idle) +
		"; SET LOCAL lock_timeout = " + database.Milliseconds(b.lock) +
		"; SET LOCAL statement_timeout = " + database.Milliseconds(statement)
	if b.plansOnce {
		settings += "; SET LOCAL plan_cache_mode = force_generic_plan"
	}
	return settings
}

// inTx runs fn in one transaction on the urgent connections. It commits if fn
// returns nil, and rolls back otherwise, even if ctx is already cancelled. It runs fn again
// after a deadlock, a serialization failure, or the idle time-out of PostgreSQL. So fn
// must not keep state across calls.
//
// fn must not call another service: the transaction would hold its row locks until that
// service answers.
//
// Fault: Timeout if the COMMIT got no answer in time. The transaction may be committed
// then.
func (db *DB) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.runTx(ctx, db.urgent, urgentTx, op, fn)
}

// decision is the request of a commit, which judges what the transaction read.
type decision[S, D any] interface {
	Decide(ctx context.Context, seen S) (D, error)
}

// runDecision reads with the rows locked, lets c decide, and writes, in one transaction of inTx.
func runDecision[C decision[S, D], S, D, R any](
	ctx context.Context, db *DB, op string, c C,
	read func(context.Context, pgx.Tx, C) (S, error), write func(context.Context, pgx.Tx, C, D) (R, error),
) (R, error) {
	var result R
	err := db.inTx(ctx, op, func(tx pgx.Tx) error {
		seen, err := read(ctx, tx, c)
		if err != nil {
			return err
		}
		decided, err := c.Decide(ctx, seen)
		if err != nil {
			return err
		}
		result, err = write(ctx, tx, c, decided)
		return err
	})
	if err != nil { // also one that came after the writes
		var none R
		return none, err
	}
	return result, nil
}

func (db *DB) runTx(ctx context.Context, pool *pgxpool.Pool, b txBounds, op string, fn func(pgx.Tx) error) error {
	var err error
	for range commitAttempts {
		err = db.tryTx(ctx, pool, b, fn)
		if err == nil || !retryable(err) || ctx.Err() != nil {
			break
		}
		db.log.DebugContext(ctx, "transaction runs again", "op", op, "err", err)
	}
	if database.ConnectionLost(err) {
		db.conns.Reset()
	}
	return toFault(op, err)
}

func (db *DB) tryTx(ctx context.Context, pool *pgxpool.Pool, b txBounds, fn func(pgx.Tx) error) error {
	var conn *pgxpool.Conn
	var tx pgx.Tx
	err := db.conns.Read(ctx, func() (err error) { // a lost BEGIN has changed nothing
		conn, tx, err = beginTx(ctx, pool, b)
		return err
	})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer conn.Release() // after commitTx, which reads the connection's mark
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // does nothing after Commit
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // commit nothing for a caller that is gone
	}
	return commitTx(ctx, tx)
}

// beginTx starts a transaction on a connection that the caller releases.
func beginTx(ctx context.Context, pool *pgxpool.Pool, b txBounds) (*pgxpool.Conn, pgx.Tx, error) {
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

// commitTx commits. The caller must not have released the connection, because the pool
// may give it to another transaction. An error leaves open whether the transaction is
// committed, unless PostgreSQL reports a rollback.
func commitTx(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	conn := tx.Conn().PgConn()
	database.TakeUnconfirmed(conn) // an earlier statement may have left a mark
	err := tx.Commit(ctx)
	if database.TakeUnconfirmed(conn) {
		err = errors.Join(database.ErrUnconfirmed, err)
	}
	if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}
