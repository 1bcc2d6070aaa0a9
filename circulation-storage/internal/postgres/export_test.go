package postgres

import (
	"context"

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

// ToFault is the last translation of PostgreSQL's errors.
var ToFault = toFault
