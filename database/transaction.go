package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Bounds are settings of one transaction. PostgreSQL enforces the time-outs: without them, a
// process that freezes keeps its row locks until it wakes up. They are local to the transaction,
// so they also hold through PgBouncer. A zero field leaves the session's setting.
type Bounds struct {
	Statement time.Duration // of each statement
	Lock      time.Duration // of one wait for a lock
	Idle      time.Duration // between two statements
	// PlansOnce makes PostgreSQL plan each statement once a connection. By its own choice it
	// plans some anew each time, such as those with arrays, which takes longer than to run them.
	PlansOnce bool
	// OnlyIndexes is for plans that are made once while a table is almost empty. Only index scans
	// keep their speed when it grows. A scan that has no index counts as very dear then, so
	// PostgreSQL would compile the statement, which takes 0.1 s; it does not.
	OnlyIndexes bool
	// NotDurable lets the COMMIT return before its WAL is on disk. A crash may undo it.
	NotDurable bool
}

// Batched returns the statement that goes first in a batch, which is one transaction.
func (b Bounds) Batched() string {
	return "SELECT " + strings.TrimPrefix(b.list(setConfig), ", ")
}

const beginSQL = "BEGIN ISOLATION LEVEL " + readCommitted

// begin returns what begins a transaction with the bounds in one round trip.
func (b Bounds) begin(ctx context.Context) string {
	b.Statement = b.limitStatement(ctx)
	return beginSQL + b.list(setLocal)
}

// limitStatement returns how long each statement of a transaction may run: without a bound of its own
// until ctx's deadline.
func (b Bounds) limitStatement(ctx context.Context) time.Duration {
	if b.Statement > 0 {
		return b.Statement
	}
	if deadline, ok := ctx.Deadline(); ok {
		return max(0, min(longStatement, time.Until(deadline))) + statementMargin
	}
	return longStatement
}

// The texts before a setting's name, between that and its value, and after it.
var (
	setLocal  = [3]string{"; SET LOCAL ", " = '", "'"}
	setConfig = [3]string{", set_config('", "', '", "', true)"}
)

// list writes each setting with the texts around it.
func (b Bounds) list(texts [3]string) string {
	var list strings.Builder
	list.Grow(256)
	set := func(wanted bool, name, value string) {
		if wanted {
			for _, part := range [...]string{texts[0], name, texts[1], value, texts[2]} {
				list.WriteString(part)
			}
		}
	}
	set(b.Statement > 0, "statement_timeout", milliseconds(b.Statement))
	set(b.Lock > 0, "lock_timeout", milliseconds(b.Lock))
	set(b.Idle > 0, "idle_in_transaction_session_timeout", milliseconds(b.Idle))
	set(b.PlansOnce, "plan_cache_mode", "force_generic_plan")
	set(b.OnlyIndexes, "enable_seqscan", "off")
	set(b.OnlyIndexes, "enable_bitmapscan", "off")
	set(b.OnlyIndexes, "jit", "off")
	set(b.NotDurable, "synchronous_commit", "off")
	return list.String()
}

const (
	// rollbackTimeout bounds the rollback that follows a cancelled request.
	rollbackTimeout = 5 * time.Second
	// defaultCommitTimeout bounds a COMMIT, which waits for the synchronous standby if there
	// is one. The end of the request does not cancel it: after a cancelled wait,
	// PostgreSQL makes the transaction visible without the standby.
	defaultCommitTimeout = 5 * time.Second
	// lateMargin is how long before its bound a COMMIT is taken for one that the standby does not
	// confirm, because the bound ends its session.
	lateMargin = 100 * time.Millisecond
	// defaultWritesMargin is added for the writes before a COMMIT in its batch. With it the bound is
	// longer than a wait for a row, also without lateMargin. Connections that it frees can lead to a
	// new primary.
	defaultWritesMargin = time.Second
	// longStatement bounds a statement whose caller has no deadline.
	longStatement = 5 * time.Minute
)

// InTx runs fn in one READ COMMITTED transaction. It commits if fn returns nil, and rolls back
// otherwise, even if ctx is already cancelled.
//
// An error of the COMMIT leaves open whether the transaction is committed, unless PostgreSQL
// reports a rollback.
func (db *DB) InTx(ctx context.Context, pool *pgxpool.Pool, b Bounds, fn func(pgx.Tx) error) error {
	var conn *pgxpool.Conn
	var tx pgx.Tx
	err := db.Read(ctx, func() (err error) { // a lost BEGIN has changed nothing
		conn, err = pool.Acquire(ctx)
		if err != nil {
			return err
		}
		tx, err = conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: b.begin(ctx)})
		if err != nil {
			conn.Release()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer conn.Release() // after the COMMIT, which reads the connection's mark
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.commitTimeout)
	defer cancel()
	if err := db.Confirm(conn, db.commitTimeout, func() error { return tx.Commit(ctx) }); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// ErrRunAgain makes Repeat run a transaction again, because it sees the result of another one
// then.
var ErrRunAgain = errors.New("run the transaction again")

// Repeat runs f, a transaction, at most so often. It runs it again after errors that changed
// nothing: a deadlock, a serialization failure, the idle time-out of PostgreSQL, and ErrRunAgain.
// So f must not keep state across calls.
func (db *DB) Repeat(ctx context.Context, attempts int, op string, f func() error) error {
	var err error
	for range attempts {
		err = f()
		if err == nil || !repeatable(err) || ctx.Err() != nil {
			break
		}
		db.log.DebugContext(ctx, "transaction runs again", "op", op, "err", err)
	}
	if ConnectionLost(err) {
		db.resetAfter(err)
	}
	return err
}

// repeatable reports whether a transaction that failed with err may run again.
func repeatable(err error) bool {
	code, _ := SQLState(err)
	switch code {
	case SerializationFailure, DeadlockDetected, IdleInTransactionTimeout:
		return !errors.Is(err, ErrUnconfirmed)
	}
	return errors.Is(err, ErrRunAgain)
}

// unconfirmed marks a connection on which a COMMIT ended without the answer of the
// synchronous standby.
const unconfirmed = "unconfirmed"

// noteUnconfirmed marks the connection when PostgreSQL gives up waiting for the
// synchronous standby. The transaction is then visible on this server, but a failover
// may lose it. It compares the routine, because PostgreSQL translates texts.
func noteUnconfirmed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.CustomData()[unconfirmed] = true
	}
}

// ErrUnconfirmed is a COMMIT that the synchronous standby did not confirm.
var ErrUnconfirmed = errors.New("the synchronous standby did not confirm the commit")

// Confirm runs f, which commits on the connection. It returns ErrUnconfirmed, beside f's error, for
// a COMMIT without the standby. New connections then begin with another host. So they do as soon as
// f takes nearly as long as bound, which also makes the database unusable until a COMMIT is confirmed.
// So bound has to be longer than the waits for locks in f. The caller must not have released the
// connection, because the pool may give it to another transaction.
func (db *DB) Confirm(conn *pgxpool.Conn, bound time.Duration, f func() error) error {
	marks := conn.Conn().PgConn().CustomData()
	delete(marks, unconfirmed) // an earlier statement may have left it
	host, _ := marks[servedBy].(string)
	late := time.AfterFunc(bound-lateMargin, func() {
		if db.leave(host) {
			db.lack.noteLateCommit()
		}
	})
	err := f()
	late.Stop()
	if _, marked := marks[unconfirmed]; marked {
		delete(marks, unconfirmed)
		db.leave(host)
		return errors.Join(ErrUnconfirmed, err)
	}
	return err
}
