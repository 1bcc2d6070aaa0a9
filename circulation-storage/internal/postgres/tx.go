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

func (db *DB) runTx(ctx context.Context, pool *pgxpool.Pool, b database.Bounds, op string, fn func(pgx.Tx) error) error {
	return db.repeat(ctx, op, func() error { return db.conns.InTx(ctx, pool, b, fn) })
}

// repeat runs f, which is one transaction, again after the errors of database.DB.Repeat.
func (db *DB) repeat(ctx context.Context, op string, f func() error) error {
	return toFault(op, db.conns.Repeat(ctx, commitAttempts, op, f))
}
