package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

// ListStatement is the statement behind RecordStore.List, for EXPLAIN.
func ListStatement(ctx context.Context, t records.Type, p records.Page) (string, []any, error) {
	statement, args, err := listStatement(t, p)
	if err != nil {
		return "", nil, err
	}
	statement, err = tableQuery(ctx, statement, t.Table)
	return statement, args, err
}

// InTx runs fn as the commits do.
func (db *DB) InTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.inTx(ctx, op, fn)
}

// AllowReset lets the next lost connection reset the pools, however soon.
func (db *DB) AllowReset() { db.lastReset.Store(0) }

// ToFault is the last translation of PostgreSQL's errors.
var ToFault = toFault
