package postgres

import (
	"context"
	"time"
)

// repeatTables keep for a day what repeats of commits are recognised by.
var repeatTables = [...]string{"check_in", "loan_change", "request_change", "given_up_check_out"}

// past is when a row c is a day old. A clock that was set back makes it last longer, but not for
// ever. No index can be searched by clock_timestamp().
const past = `c.created_date NOT BETWEEN statement_timestamp() - interval '1 day' AND statement_timestamp() + interval '1 day'`

const sweepRepeatsSQL = `
WITH old AS (SELECT c.id FROM {table} c WHERE ` + past + ` LIMIT $1::bigint` + skipLocked + `)
DELETE FROM {table} c USING old WHERE c.id = old.id
RETURNING ` + notDurable

// SweepRepeats forgets check-ins, changes of loans and requests, and check-outs given up, that are a
// day old: at most limit of each. It returns how many.
func (s *CommitStore) SweepRepeats(ctx context.Context, limit int) (swept int, err error) {
	for _, table := range repeatTables {
		n, err := s.db.sweep(ctx, "sweeping a "+table, nameTable(sweepRepeatsSQL, table), limit)
		if err != nil {
			return swept, err
		}
		swept += n
	}
	return swept, nil
}

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
	return s.db.sweep(ctx, "sweeping the history of loans", sweepLoanHistorySQL, retention, limit)
}
