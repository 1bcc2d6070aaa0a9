package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

// GiveRows gives the rows of a list's statement to out.
func GiveRows(ctx context.Context, rows pgx.Rows, out records.Sink) error {
	l := &listing{out: out, long: make(chan struct{}, 1)}
	defer l.end()
	return l.read(ctx, func(context.Context) pgx.Rows { return rows })
}
