package postgres

import (
	"context"

	"checkoutlock/circulation-storage/internal/history"
)

// HistoryStatement is the statement behind HistoryStore.List, for EXPLAIN.
func HistoryStatement(ctx context.Context, f history.Filter) (string, []any, error) {
	statement, args := listHistory(f)
	statement, err := query(ctx, statement)
	return statement, args, err
}

// HistoryAddStatement is the statement behind HistoryStore.Add.
func HistoryAddStatement(ctx context.Context) (string, error) { return query(ctx, addHistorySQL) }

// FiguresStatement is the statement behind HistoryStore.Figures.
func FiguresStatement(ctx context.Context) (string, error) { return query(ctx, figuresSQL) }

// HistorySweepStatement is the statement behind HistoryStore.Sweep.
func HistorySweepStatement(ctx context.Context) (string, error) { return query(ctx, sweepHistorySQL) }
