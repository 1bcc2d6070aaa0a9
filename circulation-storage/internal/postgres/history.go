package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/redact"
)

// HistoryStore implements history.Store on the tables check_out_history and
// check_out_waiting.
type HistoryStore struct {
	db     *DB
	logged bool
}

// NewHistoryStore returns the histories of all tenants in db. If they are logged, what the lock refused
// becomes an event for FOLIO's circulation log.
func NewHistoryStore(db *DB, logged bool) *HistoryStore { return &HistoryStore{db: db, logged: logged} }

// One statement is one round trip for the whole report. Its date is
// statement_timestamp(), which is the same for all entries.
//
//   - The entries go in by id, so that two reports with the same ones never wait for
//     each other in a circle.
//   - The row of an instance also says that it runs.
//   - $4 adds the events of what the lock refused.
const addHistorySQL = `
WITH settings AS MATERIALIZED (SELECT ` + notDurable + `),
waiting AS (
    INSERT INTO {schema}.check_out_waiting AS w (holder, waiting, reported_date, waits, version)
    SELECT $2::text, $3::integer, statement_timestamp(), $5::jsonb, nullif($6::text, '') FROM settings
    ON CONFLICT ON CONSTRAINT check_out_waiting_pkey DO UPDATE
       SET waiting = excluded.waiting, reported_date = excluded.reported_date, waits = excluded.waits, version = excluded.version),
added AS (
INSERT INTO {schema}.check_out_history (id, ended_date, outcome, code, reason, user_barcode, item_barcode,
       user_id, loan_id, service_point_id, wait_ms, took_ms, repeats, request_id, machine, instance)
SELECT c.id, date_trunc('milliseconds', statement_timestamp()) - coalesce(c."agoMs", 0) * interval '1 ms',
       c.outcome, c.code, c.reason, c."userBarcode", c."itemBarcode",
       c."userId", c."loanId", c."servicePointId", c."waitMs", c."tookMs", coalesce(c.repeats, 0), c."requestId", nullif(c.machine, ''), nullif($2::text, '')
  FROM settings, json_to_recordset($1::json) AS c(id uuid, "agoMs" bigint, outcome text, code text, reason text,
       "userBarcode" text, "itemBarcode" text, "userId" uuid, "loanId" uuid, "servicePointId" uuid,
       "waitMs" integer, "tookMs" integer, repeats integer, "requestId" text, machine text)
 ORDER BY c.id
    ON CONFLICT ON CONSTRAINT check_out_history_pkey DO NOTHING
RETURNING *)
INSERT INTO {schema}.outbox (event_type, payload)
SELECT '` + commit.LogRecord + `', jsonb_strip_nulls(jsonb_build_object('logEventType', 'LOAN', 'outcome', outcome, 'reason', reason,
       'waitMs', wait_ms, 'userId', user_id, 'itemBarcode', item_barcode, 'servicePointId', service_point_id, 'requestId', request_id,
       'updatedByUserId', r."staffId"))
  FROM added JOIN json_to_recordset($1::json) AS r(id uuid, "staffId" uuid) USING (id)
 WHERE $4::boolean AND outcome IN ('` + schemas.OutcomeLimitReached + `', '` + schemas.OutcomeLockNotAcquired + `')`

// Add implements history.Store.
func (s *HistoryStore) Add(ctx context.Context, instance string, r schemas.CheckOutReport) error {
	entries, err := marshalList(r.CheckOuts)
	if err != nil {
		return fmt.Errorf("writing past check-outs: %w", err)
	}
	waits, err := marshalList(r.Waits)
	if err != nil {
		return fmt.Errorf("writing waits: %w", err)
	}
	_, err = s.db.exec(ctx, s.db.conns.Ordinary, "keeping past check-outs", addHistorySQL, entries, instance, r.Waiting, s.logged, waits, r.Version)
	return err
}

const historyColumns = `h.id::text, h.ended_date, h.outcome, coalesce(h.code, ''), coalesce(h.reason, ''),
       coalesce(h.user_barcode, ''), coalesce(h.item_barcode, ''), coalesce(h.user_id::text, ''), coalesce(h.loan_id::text, ''),
       coalesce(h.service_point_id::text, ''), h.wait_ms, h.took_ms, h.repeats, coalesce(h.request_id, ''), coalesce(h.machine, ''), coalesce(h.instance, '')`

// listHistory returns the statement for a page and one more, which shows that there is
// a next page. It has only the conditions of this filter, so that each kind of question
// gets the plan with its index.
func listHistory(f history.Filter) (statement string, args []any) {
	statement = `SELECT ` + historyColumns + ` FROM {schema}.check_out_history h WHERE true`
	add := func(set bool, condition string) {
		if set {
			statement += condition
		}
	}
	add(f.UserBarcode != "", ` AND lower(h.user_barcode) = lower(@user::text)`)
	add(f.ItemBarcode != "", ` AND lower(h.item_barcode) = lower(@item::text)`)
	add(f.ServicePointID != "", ` AND h.service_point_id = @service_point::uuid`)
	add(f.Outcome != "", ` AND h.outcome = @outcome::text`)
	add(f.Code != "", ` AND h.code = @code::text`)
	add(!f.From.IsZero(), ` AND h.ended_date >= @from::timestamptz`)
	add(!f.Until.IsZero(), ` AND h.ended_date <= @until::timestamptz`)
	add(f.Since > 0, ` AND h.ended_date >= statement_timestamp() - @since::interval`)
	return statement + ` ORDER BY h.ended_date DESC, h.id OFFSET @offset::bigint LIMIT @limit::bigint`, []any{pgx.NamedArgs{
		"user": f.UserBarcode, "item": f.ItemBarcode, "service_point": f.ServicePointID, "outcome": f.Outcome, "code": f.Code,
		"from": f.From, "until": f.Until, "since": f.Since, "offset": f.Offset, "limit": f.Limit + 1,
	}}
}

// List implements history.Store.
func (s *HistoryStore) List(ctx context.Context, f history.Filter) (schemas.PastCheckOuts, error) {
	statement, args := listHistory(f)
	found, err := readRows(ctx, s.db, "listing past check-outs", statement, args, scanPastCheckOut)
	if err != nil {
		return schemas.PastCheckOuts{}, err
	}
	page := schemas.PastCheckOuts{CheckOuts: found, More: len(found) > f.Limit}
	if page.More {
		page.CheckOuts = found[:f.Limit]
	}
	return page, nil
}

func scanPastCheckOut(row pgx.CollectableRow) (schemas.PastCheckOut, error) {
	var p schemas.PastCheckOut
	err := row.Scan(&p.ID, (*folioTime)(&p.Date), &p.Outcome, &p.Code, &p.Reason, &p.UserBarcode, &p.ItemBarcode, &p.UserID, &p.LoanID,
		&p.ServicePointID, &p.WaitMs, &p.TookMs, &p.Repeats, &p.RequestID, &p.Machine, &p.Instance)
	return p, err
}

// Reports about waiting count for seconds. Those of an instance that is gone stay for a
// day, for operators, also when the clock was set back.
const sweepHistorySQL = `
WITH settings AS MATERIALIZED (SELECT ` + notDurable + `),
gone AS (
    DELETE FROM {schema}.check_out_waiting w USING settings
     WHERE w.reported_date NOT BETWEEN statement_timestamp() - interval '1 day' AND statement_timestamp() + interval '1 day'),
old AS (
    SELECT h.id FROM settings, {schema}.check_out_history h WHERE h.ended_date < statement_timestamp() - $1::interval
     LIMIT $2::bigint` + skipLocked + `)
DELETE FROM {schema}.check_out_history h USING old WHERE h.id = old.id`

// Sweep deletes at most limit check-outs that ended longer ago than retention, and returns how many. It
// skips those in use. It also deletes old numbers of waiting check-outs.
func (s *HistoryStore) Sweep(ctx context.Context, retention time.Duration, limit int) (int, error) {
	return s.db.sweep(ctx, "sweeping past check-outs", sweepHistorySQL, retention, limit)
}

const (
	// waitingCounts is when an instance's report about waiting still counts. It may be
	// ahead of a clock that was set back a little.
	waitingCounts = `w.reported_date BETWEEN statement_timestamp() - interval '5 s' AND statement_timestamp() + interval '5 s'`

	// bucket is the length of a bucket.
	bucket = `$2::integer * interval '1 minute'`
	// firstMinute is when the first of the buckets of the last $1 minutes began. statement_timestamp(),
	// since clock_timestamp() in a condition keeps PostgreSQL from using an index.
	firstMinute = `date_bin(` + bucket + `, statement_timestamp(), 'epoch') - ($1::integer - $2::integer) * interval '1 minute'`
	inMinutes   = `h.ended_date >= ` + firstMinute + ` AND h.ended_date < ` + firstMinute + ` + $1::integer * interval '1 minute'
       AND ($3::uuid IS NULL OR h.service_point_id = $3::uuid)`

	// example is a reason with the barcodes to hide in it. The least example has a text
	// if any has.
	example = `ARRAY[h.reason, h.user_barcode, h.item_barcode] COLLATE "C"`
)

// Both parts that read the table have the date range, so that each reads no more than it
// needs. In a part of its own, the range would make PostgreSQL set rows aside.
//
//   - counted has a row for each minute with check-outs, and one without minute for
//     all of them.
//   - ranked has a row for each cause, with the least of its reasons as its example;
//     those from place 11 on are one in the answer.
var figuresSQL = `
WITH counted AS (
    SELECT date_bin(` + bucket + `, h.ended_date, 'epoch') AS minute, json_build_object(
               'checkOuts', count(*), 'lent', count(*) FILTER (WHERE h.outcome = '` + schemas.OutcomeLent + `'), 'locked', count(h.wait_ms),
               'waitP50Ms', percentile_disc(0.5) WITHIN GROUP (ORDER BY h.wait_ms),
               'waitP95Ms', percentile_disc(0.95) WITHIN GROUP (ORDER BY h.wait_ms), 'waitMaxMs', max(h.wait_ms)) AS figures
      FROM {schema}.check_out_history h WHERE ` + inMinutes + `
     GROUP BY GROUPING SETS ((1), ())),
ranked AS (
    SELECT h.outcome, h.code, min(` + example + `) AS example, count(*) AS count,
           least(row_number() OVER (ORDER BY count(*) DESC, h.outcome, h.code, min(` + example + `)), 11) AS place
      FROM {schema}.check_out_history h WHERE ` + inMinutes + ` AND h.outcome <> '` + schemas.OutcomeLent + `'
     GROUP BY h.outcome, h.code, CASE WHEN h.code IS NULL THEN h.reason END),
placed AS (
    SELECT place, CASE WHEN place < 11 THEN json_build_object('outcome', min(outcome), 'code', min(code), 'reason', (min(example))[1],
               'userBarcode', (min(example))[2], 'itemBarcode', (min(example))[3], 'count', sum(count))
               ELSE json_build_object('count', sum(count)) END AS cause
      FROM ranked GROUP BY place)
SELECT statement_timestamp(), ` + firstMinute + `,
       (SELECT coalesce(sum(w.waiting), 0) FROM {schema}.check_out_waiting w WHERE ` + waitingCounts + `),
       (` + heldSQL + `),
       (SELECT json_agg(coalesce(c.figures, '{}') ORDER BY n)
          FROM generate_series(0, $1::integer / $2::integer - 1) n LEFT JOIN counted c ON c.minute = ` + firstMinute + ` + n * ` + bucket + `),
       (SELECT figures FROM counted WHERE minute IS NULL),
       (SELECT coalesce(json_agg(cause ORDER BY place), '[]') FROM placed)`

// Figures implements history.Store.
func (s *HistoryStore) Figures(ctx context.Context, want schemas.FigureFilter) (schemas.Figures, error) {
	var f schemas.Figures
	bucket := max(want.Bucket, 1)
	var first time.Time
	var totals []schemas.FigureTotal
	var causes []cause
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "summing up past check-outs", figuresSQL, []any{want.Minutes, bucket, nullIfEmpty(want.ServicePointID)},
		(*folioTime)(&f.Date), &first, &f.Waiting, &f.Held, &totals, &f.Total, &causes)
	if err != nil {
		return schemas.Figures{}, err
	}
	f.Minutes = make([]schemas.FigureMinute, len(totals))
	for i, total := range totals {
		begin := first.Add(time.Duration(i*bucket) * time.Minute)
		f.Minutes[i] = schemas.FigureMinute{Date: begin.UTC().Format(schemas.FolioTime), FigureTotal: total}
	}
	f.Causes = convert.All(causes, cause.withoutBarcodes)
	return f, nil
}

// cause is a cause of the answer with the barcodes of its example.
type cause struct {
	schemas.FigureCause
	UserBarcode string `json:"userBarcode"`
	ItemBarcode string `json:"itemBarcode"`
}

// withoutBarcodes hides the longer barcode first, which may have the other inside.
func (c cause) withoutBarcodes() schemas.FigureCause {
	barcodes := []string{c.UserBarcode, c.ItemBarcode}
	if len(c.UserBarcode) < len(c.ItemBarcode) {
		slices.Reverse(barcodes)
	}
	for _, barcode := range barcodes {
		c.Reason = redact.Hide(c.Reason, barcode, "…")
	}
	return c.FigureCause
}

// listWaitsSQL returns the waits of all instances. A report is some time old, so they are longer by now.
const listWaitsSQL = `
SELECT coalesce(a."userId", ''), coalesce(a."requestId", ''), coalesce(a."servicePointId", ''), coalesce(a.machine, ''),
       greatest(0, a."waitedMs" + extract(epoch FROM statement_timestamp() - w.reported_date) * 1000)::bigint AS waited, w.holder
  FROM {schema}.check_out_waiting w
 CROSS JOIN jsonb_to_recordset(w.waits) AS a("userId" text, "requestId" text, "servicePointId" text, machine text, "waitedMs" bigint)
 WHERE ` + waitingCounts + ` ORDER BY waited DESC LIMIT $1::bigint`

const slowestSQL = `
SELECT ` + historyColumns + ` FROM {schema}.check_out_history h
 WHERE h.ended_date > statement_timestamp() - $1::interval AND h.wait_ms > 0 ORDER BY h.wait_ms DESC, h.id LIMIT $2::bigint`

// Waits implements history.Store.
func (s *HistoryStore) Waits(ctx context.Context) (schemas.LockWaits, error) {
	var w schemas.LockWaits
	var err error
	w.Waiting, err = readRows(ctx, s.db, "listing waits for locks", listWaitsSQL, []any{schemas.MaxReportedWaits}, pgx.RowToStructByPos[schemas.LockWait])
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
       (SELECT coalesce(jsonb_agg(jsonb_build_object('instance', w.holder, 'version', w.version, 'date', to_char(w.reported_date` + inFolioForm + `) ORDER BY w.holder), '[]')
          FROM {schema}.check_out_waiting w
         WHERE w.holder <> '' AND w.reported_date > statement_timestamp() - interval '1 day'),
       (SELECT coalesce(jsonb_agg(u ORDER BY u.date DESC, u."servicePointId", u.machine), '[]') FROM (` + unknownPlacesSQL(`interval '1 day'`) + ` LIMIT $5::bigint) u)`

// unknownPlacesSQL lists which machines sent a service point that does not exist, in the time before now.
// A machine that was mended is listed for that time, and no longer than until the service point is made.
func unknownPlacesSQL(within string) string {
	return `
SELECT h.service_point_id AS "servicePointId", coalesce(h.machine, '') AS machine, count(*) AS "checkOuts", to_char(max(h.ended_date)` + inFolioForm + ` AS date
  FROM {schema}.check_out_history h
 WHERE h.ended_date > statement_timestamp() - ` + within + ` AND h.service_point_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM {schema}.service_point p WHERE p.id = h.service_point_id)
 GROUP BY h.service_point_id, coalesce(h.machine, '') ORDER BY date DESC`
}

var countUnknownPlacesSQL = `
SELECT count(*), coalesce((array_agg(u.machine))[1], ''), coalesce((array_agg(u."servicePointId"::text))[1], '')
  FROM (` + unknownPlacesSQL(`$1::interval`) + `) u`

// CountUnknownPlaces counts the machines that sent a service point which does not exist in the time
// before now. It returns the last one too, and the service point that it sent.
func (s *HistoryStore) CountUnknownPlaces(ctx context.Context, within time.Duration) (n int, machine, servicePointID string, err error) {
	err = s.db.count(ctx, "counting unknown service points", countUnknownPlacesSQL, []any{within}, &n, &machine, &servicePointID)
	return n, machine, servicePointID, err
}

// CheckLimit implements history.Store.
func (s *HistoryStore) CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error) {
	var c schemas.LimitCheck
	args := []any{schemas.LimitCheckDays * 24 * time.Hour, maxRecounted, since, schemas.MaxOverLimit, schemas.MaxUnknownPlaces}
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "checking the limit", checkLimitSQL, args, (*folioTime)(&c.Date), &c.LimitReached, &c.OverLimit, &c.Instances, &c.UnknownPlaces)
	return c, err
}
