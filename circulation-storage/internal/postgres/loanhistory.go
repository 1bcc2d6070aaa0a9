package postgres

import (
	"context"
	"time"
)

// sweepLoanHistorySQL leaves the entries of open loans, which staff still read.
const sweepLoanHistorySQL = `
WITH settings AS MATERIALIZED (SELECT ` + notDurable + `),
old AS (
    SELECT h.id FROM settings, {schema}.loan_history h
     WHERE {schema}.record_time(h.jsonb->>'createdDate') < statement_timestamp() - $1::interval
       AND NOT EXISTS (SELECT FROM {schema}.loan l WHERE l.id = h.loan_id AND l.is_open)
     LIMIT $2::bigint` + skipLocked + `)
DELETE FROM {schema}.loan_history h USING old WHERE h.id = old.id`

// SweepLoanHistory deletes at most limit entries of the history of loans that are older than retention,
// and returns how many.
func (s *RecordStore) SweepLoanHistory(ctx context.Context, retention time.Duration, limit int) (int, error) {
	return s.db.exec(ctx, s.db.pool, "sweeping the history of loans", sweepLoanHistorySQL, retention, limit)
}
