package postgres

import (
	"context"
	"slices"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/redact"
)

const (
	// waitingCounts is when an instance's report about waiting still counts. It may be
	// ahead of a clock that was set back a little.
	waitingCounts = `w.reported_date BETWEEN statement_timestamp() - interval '5 s' AND statement_timestamp() + interval '5 s'`

	// firstMinute is when the last $1 minutes began. statement_timestamp(), since
	// clock_timestamp() in a condition keeps PostgreSQL from using an index.
	firstMinute = `date_trunc('minute', statement_timestamp(), 'UTC') - ($1::integer - 1) * interval '1 minute'`
	inMinutes   = `h.ended_date >= ` + firstMinute + ` AND h.ended_date < ` + firstMinute + ` + $1::integer * interval '1 minute'`

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
    SELECT date_trunc('minute', h.ended_date, 'UTC') AS minute, json_build_object(
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
          FROM generate_series(0, $1::integer - 1) n LEFT JOIN counted c ON c.minute = ` + firstMinute + ` + n * interval '1 minute'),
       (SELECT figures FROM counted WHERE minute IS NULL),
       (SELECT coalesce(json_agg(cause ORDER BY place), '[]') FROM placed)`

// Figures implements history.Store.
func (s *HistoryStore) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	var f schemas.Figures
	var now, first time.Time
	var totals []schemas.FigureTotal
	var causes []cause
	err := s.db.readRow(ctx, s.db.pool, "summing up past check-outs", figuresSQL, []any{minutes},
		&now, &first, &f.Waiting, &f.Held, &totals, &f.Total, &causes)
	if err != nil {
		return schemas.Figures{}, err
	}
	f.Date = now.UTC().Format(schemas.FolioTime)
	f.Minutes = make([]schemas.FigureMinute, len(totals))
	for i, total := range totals {
		begin := first.Add(time.Duration(i) * time.Minute)
		f.Minutes[i] = schemas.FigureMinute{Date: begin.UTC().Format(schemas.FolioTime), FigureTotal: total}
	}
	f.Causes = make([]schemas.FigureCause, len(causes))
	for i, c := range causes {
		f.Causes[i] = c.withoutBarcodes()
	}
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
