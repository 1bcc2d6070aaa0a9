package database

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Fill adds statements to a batch that on will send. It may run again, for another connection.
type Fill func(on Querier, batch *pgx.Batch) error

// BoundsMark may stand in the first statement that read of InTwoBatches adds, for columns that set the
// bounds, with a comma behind them. It saves a statement. The time-out of statements is in force from
// the next one on.
const BoundsMark = "{bounds}"

// InTwoBatches runs one READ COMMITTED transaction in two round trips. BEGIN and the bounds go with
// the batch that read fills, COMMIT with the one that the result of decide fills. An error of decide
// or of a statement rolls back, even if ctx is already cancelled.
//
// An error of the second batch leaves open whether the transaction is committed, unless PostgreSQL
// reports which statement failed.
func (db *DB) InTwoBatches(ctx context.Context, pool *pgxpool.Pool, b Bounds, read Fill, decide func() (Fill, error)) error {
	var conn *pgxpool.Conn
	err := db.Read(ctx, func() (err error) { // a lost first batch has changed nothing
		if conn, err = pool.Acquire(ctx); err != nil {
			return fmt.Errorf("beginning: %w", err)
		}
		if err = b.sendFirst(ctx, conn, read); err != nil {
			leaveTransaction(ctx, conn)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer leaveTransaction(ctx, conn) // after the COMMIT, which reads the connection's mark
	write, err := decide()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // commit nothing for a caller that is gone
	}
	var batch pgx.Batch
	if err := write(conn, &batch); err != nil {
		return err
	}
	batch.Queue("COMMIT")
	bound := db.commitTimeout + db.writesMargin
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	return db.Confirm(conn, bound, func() error { return conn.SendBatch(ctx, &batch).Close() })
}

// sendFirst begins a transaction with the bounds, and sends what read adds.
func (b Bounds) sendFirst(ctx context.Context, conn *pgxpool.Conn, read Fill) error {
	var batch pgx.Batch
	batch.Queue(beginSQL)
	limit := b.limitStatement(ctx)
	// The limit is a parameter, so that the text stays the same and is prepared once.
	settings := func(place int) string {
		return "set_config('statement_timeout', $" + strconv.Itoa(place) + ", true)" + b.list(setConfig)
	}
	batch.Queue("SELECT "+settings(1), milliseconds(limit))
	if err := read(conn, &batch); err != nil {
		return err
	}
	if first := batch.QueuedQueries[2]; strings.Contains(first.SQL, BoundsMark) {
		first.Arguments = append(first.Arguments, milliseconds(limit))
		first.SQL = strings.Replace(first.SQL, BoundsMark, settings(len(first.Arguments))+",", 1)
		batch.QueuedQueries = slices.Delete(batch.QueuedQueries, 1, 2)
	}
	return conn.SendBatch(ctx, &batch).Close()
}

// leaveTransaction rolls back what is not committed, and gives the connection back.
func leaveTransaction(ctx context.Context, conn *pgxpool.Conn) {
	defer conn.Release()
	if conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // the pool closes a connection that is still in a transaction
}
