package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
)

// commitAttempts is how often a transaction runs at most.
const commitAttempts = 4

// In a transaction, a statement may run until the caller's deadline.
var (
	// shortTx is for locks, loans, items, requests and settings.
	shortTx = database.Bounds{Idle: 3 * time.Second, Lock: 5 * time.Second}
	// urgentTx is for transactions whose statements find rows by indexes, whatever the parameters.
	// By its own choice PostgreSQL plans the recount for nearly every check-out, which takes longer
	// than to count.
	urgentTx = database.Bounds{Idle: shortTx.Idle, Lock: shortTx.Lock, PlansOnce: true}
	// forceTx is for an operator who waits for the answer: longer than a frozen commit
	// lives, shorter than 5 s.
	forceTx = database.Bounds{Idle: 3 * time.Second, Lock: 4 * time.Second}
	// longTx is for creating and dropping schemas.
	longTx = database.Bounds{Idle: time.Minute, Lock: 5 * time.Minute}
)

// inTx runs fn in one transaction on the urgent connections. It commits if fn
// returns nil, and rolls back otherwise, even if ctx is already cancelled. See
// database.DB.Repeat for the errors after which it runs fn again. So fn must not keep state
// across calls.
//
// fn must not call another service: the transaction would hold its row locks until that
// service answers.
//
// Fault: Timeout if the COMMIT got no answer in time. The transaction may be committed
// then.
func (db *DB) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.runTx(ctx, db.conns.Urgent, urgentTx, op, fn)
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

func (db *DB) runTx(ctx context.Context, pool *pgxpool.Pool, b database.Bounds, op string, fn func(pgx.Tx) error) error {
	return toFault(op, db.conns.Repeat(ctx, commitAttempts, op, func() error { return db.conns.InTx(ctx, pool, b, fn) }))
}
