package postgres

import (
	"context"
	"time"
)

// Gauges are numbers of one tenant for the metrics.
type Gauges struct {
	HeldLocks  int           // outdated ones do not count
	OldestLock time.Duration // the age of the oldest held lock
	Events     int           // in the outbox, maxCountedEvents at most
}

// maxCountedEvents bounds the work for a scrape. So many events are a reader that is away.
const maxCountedEvents = 10_000

var gaugesSQL = `
SELECT count(*), coalesce(max(clock_timestamp() - l.creation_date), interval '0'),
       (SELECT count(*) FROM (SELECT FROM {schema}.outbox LIMIT $1::bigint) waiting)
  FROM {schema}.check_out_lock l WHERE NOT ` + own

// ReadGauges reads the numbers of the tenant.
func (db *DB) ReadGauges(ctx context.Context) (Gauges, error) {
	var g Gauges
	err := db.readRow(ctx, db.conns.Ordinary, "reading gauges", gaugesSQL, []any{seldom, maxCountedEvents}, &g.HeldLocks, &g.OldestLock, &g.Events)
	return g, err
}

// maxRecounted bounds the work of CountOverLimit, and recountedFor how far it goes back.
const (
	maxRecounted = 10_000
	recountedFor = time.Hour
)

// overLimit finds the patrons of the loans lent in the last $1, the newest $2 of them, of which one exceeded a
// limit that its check-out counted. Loans that came later do not count, because staff may lend beyond a limit.
// Neither do limits on what becomes overdue, recalled or lost.
const overLimit = `
SELECT DISTINCT l.user_id
  FROM (SELECT loan_id FROM {schema}.loan_history h
         WHERE {schema}.record_time(h.jsonb->>'createdDate') > statement_timestamp() - $1::interval AND h.jsonb->>'operation' = 'I'
         ORDER BY {schema}.record_time(h.jsonb->>'createdDate') DESC LIMIT $2::bigint) lent
  JOIN {schema}.loan l ON l.id = lent.loan_id AND l.is_open
 CROSS JOIN jsonb_array_elements(l.limits) AS w
 WHERE NOT w ?| ARRAY['overdueMinutes', 'recalled', 'lost']
   AND (w->>'max')::bigint < (
       SELECT count(*) FROM {schema}.loan o JOIN {schema}.item i ON i.id = o.item_id
        WHERE o.is_open AND o.user_id = l.user_id AND (o.lent_date > l.lent_date) IS NOT TRUE AND ` + countedByLimit + `
          AND (w->>'materialTypeId' IS NULL OR i.material_type_id = (w->>'materialTypeId')::uuid)
          AND (w->>'loanTypeId' IS NULL OR ` + loanTypeInForce + ` = (w->>'loanTypeId')::uuid))`

const countOverLimitSQL = `SELECT count(*) FROM (` + overLimit + `) over`

// CountOverLimit counts the patrons of the tenant with a loan of the last hour beyond a limit that its
// check-out counted.
func (db *DB) CountOverLimit(ctx context.Context) (int, error) {
	var n int
	err := db.readRow(ctx, db.conns.Ordinary, "counting patrons over their limit", countOverLimitSQL, []any{seldom, recountedFor, maxRecounted}, &n)
	return n, err
}
