package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas"
)

// listWaitsSQL returns the waits of all instances. A report is some time old, so they are longer by now.
const listWaitsSQL = `
SELECT coalesce(a."userId", ''), coalesce(a."requestId", ''), coalesce(a."servicePointId", ''), coalesce(a.machine, ''), w.holder,
       greatest(0, a."waitedMs" + extract(epoch FROM statement_timestamp() - w.reported_date) * 1000)::bigint AS waited
  FROM {schema}.check_out_waiting w
 CROSS JOIN jsonb_to_recordset(w.waits) AS a("userId" text, "requestId" text, "servicePointId" text, machine text, "waitedMs" bigint)
 WHERE w.waiting > 0 AND ` + waitingCounts + ` ORDER BY waited DESC LIMIT $1::bigint`

const slowestSQL = `
SELECT ` + historyColumns + ` FROM {schema}.check_out_history h
 WHERE h.ended_date > statement_timestamp() - $1::interval AND h.wait_ms > 0 ORDER BY h.wait_ms DESC, h.id LIMIT $2::bigint`

// Waits implements history.Store.
func (s *HistoryStore) Waits(ctx context.Context) (schemas.LockWaits, error) {
	var w schemas.LockWaits
	var err error
	w.Waiting, err = readRows(ctx, s.db, "listing waits for locks", listWaitsSQL, []any{schemas.MaxReportedWaits}, func(row pgx.CollectableRow) (schemas.LockWait, error) {
		var one schemas.LockWait
		err := row.Scan(&one.UserID, &one.RequestID, &one.ServicePointID, &one.Machine, &one.Instance, &one.WaitedMs)
		return one, err
	})
	if err != nil {
		return w, err
	}
	w.Slowest, err = readRows(ctx, s.db, "listing long waits", slowestSQL, []any{schemas.SlowestMinutes * time.Minute, schemas.MaxSlowest}, scanPastCheckOut)
	return w, err
}

const checkLimitSQL = `
SELECT statement_timestamp(),
       (SELECT count(*) FROM {schema}.check_out_history h
         WHERE h.outcome = '` + schemas.OutcomeLimitReached + `' AND h.ended_date >= $3::timestamptz),
       ARRAY(SELECT over.user_id::text FROM (` + overLimit + `) over ORDER BY 1 LIMIT $4::bigint),
       (SELECT coalesce(jsonb_agg(jsonb_build_object('instance', w.holder, 'version', w.version, 'date', w.reported_date) ORDER BY w.holder), '[]')
          FROM {schema}.check_out_waiting w
         WHERE w.holder <> '' AND w.reported_date > statement_timestamp() - interval '1 day')`

// CheckLimit implements history.Store.
func (s *HistoryStore) CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error) {
	var c schemas.LimitCheck
	var now time.Time
	args := []any{schemas.LimitCheckDays * 24 * time.Hour, maxRecounted, since, schemas.MaxOverLimit}
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "checking the limit", checkLimitSQL, args, &now, &c.LimitReached, &c.OverLimit, &c.Instances)
	c.Date = now.UTC().Format(schemas.FolioTime)
	for i, instance := range c.Instances {
		if at, err := time.Parse(time.RFC3339Nano, instance.Date); err == nil {
			c.Instances[i].Date = at.UTC().Format(schemas.FolioTime)
		}
	}
	return c, err
}
