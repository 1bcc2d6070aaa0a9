package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/records"
)

// Statements for EXPLAIN.

// CountOpenLoansSQL is the count of the limit.
const CountOpenLoansSQL = countOpenLoansSQL

// ListStatement returns the statement of RecordStore.List.
func ListStatement(ctx context.Context, t records.Type, p records.Page) (string, []any, error) {
	q, err := writeListQuery(t, p)
	if err != nil {
		return "", nil, err
	}
	statement, err := nameSchema(ctx, q.page)
	return statement, q.args, err
}

// HistoryStatement returns the statement of HistoryStore.List.
func HistoryStatement(ctx context.Context, f history.Filter) (string, []any, error) {
	statement, args := listHistory(f)
	statement, err := nameSchema(ctx, statement)
	return statement, args, err
}

// HistoryAddStatement returns the statement of HistoryStore.Add.
func HistoryAddStatement(ctx context.Context) (string, error) { return nameSchema(ctx, addHistorySQL) }

// FiguresStatement returns the statement of HistoryStore.Figures.
func FiguresStatement(ctx context.Context) (string, error) { return nameSchema(ctx, figuresSQL) }

// HistorySweepStatement returns the statement of HistoryStore.Sweep.
func HistorySweepStatement(ctx context.Context) (string, error) {
	return nameSchema(ctx, sweepHistorySQL)
}

// GiveRows gives the rows of a list's statement to out.
func GiveRows(ctx context.Context, rows pgx.Rows, out records.Sink) error {
	l := &listing{out: out, long: make(chan struct{}, 1)}
	defer l.freePlace()
	return l.readRows(ctx, func(context.Context) pgx.Rows { return rows })
}

// InTx runs fn as the commits do.
func (db *DB) InTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.inTx(ctx, op, fn)
}

// AllowReset lets the next lost connection reset the pools, however soon.
func (db *DB) AllowReset() { db.conns.AllowReset() }

// UseMigrations replaces the migration files, which stand in a folder sql.
func (db *DB) UseMigrations(files fs.FS) { db.migrations = files }

// ToFault is the last translation of PostgreSQL's errors.
var ToFault = toFault

// TenantOfSchema is tenantOfSchema.
var TenantOfSchema = tenantOfSchema

// The statements that read the lock settings, for EXPLAIN.
const (
	SettingsStateSQL = settingsStateSQL
	LockVersionSQL   = lockVersionSQL
)

// CheckOutFactsSQL is the statement of CommitStore.ReadCheckOutFacts, for EXPLAIN.
const CheckOutFactsSQL = checkOutFactsSQL
