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

var checkLimitSQL = `
SELECT statement_timestamp(),
       (SELECT count(*) FROM {schema}.check_out_history h
         WHERE h.outcome = '` + schemas.OutcomeLimitReached + `' AND h.ended_date >= $3::timestamptz),
       ARRAY(SELECT over.user_id::text FROM (` + overLimit + `) over ORDER BY 1 LIMIT $4::bigint),
       (SELECT coalesce(jsonb_agg(jsonb_build_object('instance', w.holder, 'version', w.version, 'date', w.reported_date) ORDER BY w.holder), '[]')
          FROM {schema}.check_out_waiting w
         WHERE w.holder <> '' AND w.reported_date > statement_timestamp() - interval '1 day'),
       (SELECT coalesce(jsonb_agg(u ORDER BY u.date DESC, u."servicePointId", u.machine), '[]') FROM (` + unknownPlacesSQL(`interval '1 day'`) + ` LIMIT $5::bigint) u)`

// unknownPlacesSQL lists which machines sent a service point that does not exist, in the time before now.
// A machine that was mended is listed for that time, and no longer than until the service point is made.
func unknownPlacesSQL(within string) string {
	return `
SELECT h.service_point_id AS "servicePointId", coalesce(h.machine, '') AS machine, count(*) AS "checkOuts", max(h.ended_date) AS date
  FROM {schema}.check_out_history h
 WHERE h.ended_date > statement_timestamp() - ` + within + ` AND h.service_point_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM {schema}.service_point p WHERE p.id = h.service_point_id)
 GROUP BY h.service_point_id, coalesce(h.machine, '') ORDER BY date DESC`
}

var countUnknownPlacesSQL = `SELECT count(*), coalesce(min(u.machine), ''), coalesce(min(u."servicePointId"::text), '') FROM (` + unknownPlacesSQL(`$1::interval`) + `) u`

// CountUnknownPlaces counts the machines that sent a service point which does not exist in the time
// before now. It returns one of them too, and one of the service points.
func (s *HistoryStore) CountUnknownPlaces(ctx context.Context, within time.Duration) (n int, machine, servicePointID string, err error) {
	err = s.db.readRow(ctx, s.db.conns.Ordinary, "counting unknown service points", countUnknownPlacesSQL, []any{seldom, within}, &n, &machine, &servicePointID)
	return n, machine, servicePointID, err
}

// CheckLimit implements history.Store.
func (s *HistoryStore) CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error) {
	var c schemas.LimitCheck
	args := []any{schemas.LimitCheckDays * 24 * time.Hour, maxRecounted, since, schemas.MaxOverLimit, schemas.MaxUnknownPlaces}
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "checking the limit", checkLimitSQL, args, (*folioTime)(&c.Date), &c.LimitReached, &c.OverLimit, &c.Instances, &c.UnknownPlaces)
	for i := range c.Instances {
		c.Instances[i].Date = formatStored(c.Instances[i].Date)
	}
	for i := range c.UnknownPlaces {
		c.UnknownPlaces[i].Date = formatStored(c.UnknownPlaces[i].Date)
	}
	return c, err
}

// formatStored writes a date of PostgreSQL's JSON as answers have it.
func formatStored(date string) string {
	at, err := time.Parse(time.RFC3339Nano, date)
	if err != nil {
		return date
	}
	return at.UTC().Format(schemas.FolioTime)
}
