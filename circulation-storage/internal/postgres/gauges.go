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
	err := db.readRow(ctx, db.conns.Ordinary, "reading gauges", gaugesSQL, []any{maxCountedEvents}, &g.HeldLocks, &g.OldestLock, &g.Events)
	return g, err
}
