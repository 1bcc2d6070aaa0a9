package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

const (
	// takeTitleJobSQL also takes a job whose process has died: its work can be done again.
	takeTitleJobSQL = `
UPDATE {schema}.tlr_feature_toggle_job j SET jsonb = j.jsonb || '{"status":"in-progress"}' || ` + updatedNow + `
 WHERE j.id = (SELECT id FROM {schema}.tlr_feature_toggle_job WHERE jsonb->>'status' IN ('open', 'in-progress')
                ORDER BY jsonb->>'status', {schema}.record_time(jsonb->'metadata'->>'createdDate') DESC, id LIMIT 1)
RETURNING j.id, EXISTS (SELECT FROM {schema}.circulation_settings WHERE ` + isTitleSetting + `)`

	// endTitleJobSQL ends a job once, with what is wrong, if anything is.
	endTitleJobSQL = `
UPDATE {schema}.tlr_feature_toggle_job j SET jsonb = j.jsonb || ` + updatedNow + ` || jsonb_build_object(
       'numberOfUpdatedRequests', (SELECT count(*) FROM {schema}.request WHERE is_open AND position IS NOT NULL),
       'status', CASE WHEN wrong.texts = '[]' THEN 'done' ELSE 'failed' END, 'errors', wrong.texts)
  FROM (SELECT to_jsonb($2::text[]) || coalesce((SELECT jsonb_agg('The request ' || id || ' names no item, and requests for titles are off')
          FROM (SELECT id FROM {schema}.request WHERE $3::boolean AND is_open AND item_id IS NULL ORDER BY id LIMIT 10) AS without
        HAVING NOT (` + titleLevelSQL + `)), '[]') AS texts) AS wrong
 WHERE j.id = $1::uuid AND j.jsonb->>'status' = 'in-progress'`

	updatedNow = `jsonb_build_object('metadata', coalesce(j.jsonb->'metadata', '{}') || jsonb_build_object('updatedDate',
       ` + folioNow + `))`

	// misnumberedQueuesSQL finds queues whose positions are not 1, 2, … $2 are queues to pass over.
	misnumberedQueuesSQL = `
WITH titles AS MATERIALIZED (SELECT (` + titleLevelSQL + `) AS enabled),
open AS (SELECT r.instance_id, r.position, CASE WHEN NOT t.enabled THEN r.item_id END AS item_id
           FROM {schema}.request r CROSS JOIN titles t
          WHERE r.is_open AND CASE WHEN t.enabled THEN r.instance_id ELSE r.item_id END <> ALL ($2::uuid[]))
SELECT (array_agg(instance_id))[1], item_id FROM open GROUP BY item_id, CASE WHEN item_id IS NULL THEN instance_id END
HAVING count(DISTINCT position) < count(*) OR min(position) <> 1 OR max(position) <> count(*)
 LIMIT $1::bigint`
)

// renumberedAtOnce is how many queues one statement finds.
const renumberedAtOnce = 500

// RunTitleJob implements commit.Store. It may run any number of times, also at once, because it only
// writes queues whose positions have gaps or repeats. A job that ctx or an outage interrupts stays in
// progress: the next call finishes it.
func (s *CommitStore) RunTitleJob(ctx context.Context) error {
	var id uuid.UUID
	var known bool
	err := s.db.writeRow(ctx, s.db.conns.Ordinary, "taking a job of title level requests", takeTitleJobSQL, []any{seldom}, &id, &known)
	if err != nil {
		return explainNoRow(err, nil)
	}
	wrong := []string{"TLR settings not found"} // as in FOLIO
	if known {
		if wrong, err = s.renumberQueues(ctx); err != nil {
			return err
		}
	}
	_, err = s.db.exec(ctx, s.db.conns.Ordinary, "ending a job of title level requests", endTitleJobSQL, id, wrong, known)
	return err
}

// renumberQueues renumbers each queue in a transaction of its own, and passes over those that cannot be
// renumbered. It returns why. An outage, or a lock held too long, ends it with an error: it can go on later.
func (s *CommitStore) renumberQueues(ctx context.Context) (wrong []string, err error) {
	passed := []uuid.UUID{}
	wrong = []string{}
	for {
		queues, err := readRows(ctx, s.db, "finding queues to renumber", misnumberedQueuesSQL, []any{renumberedAtOnce, formatIDs(passed)}, pgx.RowToStructByPos[commit.Renumbering])
		if err != nil || len(queues) == 0 {
			return wrong, err
		}
		for _, queue := range queues {
			_, err := s.changeQueue(ctx, "renumbering a queue of requests", queue.Decide, rowLocks{
				instanceID: queue.InstanceID, itemID: queue.ItemID, titleLevel: queue.ItemID == uuid.Nil,
			})
			switch {
			case ctx.Err() != nil, fault.Is(err, fault.Unavailable), fault.Is(err, fault.Timeout), fault.Is(err, fault.InUse):
				return nil, errors.Join(ctx.Err(), err)
			case err != nil:
				wrong = append(wrong, fault.Text(err))
			}
			passed = append(passed, queue.ID())
		}
	}
}
