package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
)

// expiredQueuesSQL finds queues with expired requests by an index of their dates, those that expired
// first before others. It compares with now(), because an index cannot be searched by
// clock_timestamp(). The transaction of each queue judges again. $2 are queues to pass over. Without an
// instance the item has the queue, as for other changes of requests.
const expiredQueuesSQL = `
WITH titles AS MATERIALIZED (
    SELECT (` + titleLevelSQL + `) AS enabled)
SELECT r.instance_id, array_remove(array_agg(DISTINCT r.item_id), NULL), t.enabled AND r.instance_id IS NOT NULL
  FROM {schema}.request r CROSS JOIN titles t
 WHERE r.is_open AND coalesce(r.instance_id, r.item_id) IS NOT NULL
   AND coalesce(CASE WHEN NOT t.enabled THEN r.item_id END, r.instance_id, r.item_id) <> ALL ($2::uuid[])
   AND {schema}.record_time(r.jsonb->>CASE r.status
       WHEN 'Open - Awaiting pickup' THEN 'holdShelfExpirationDate' ELSE 'requestExpirationDate' END) < now()
 GROUP BY r.instance_id, CASE WHEN NOT t.enabled OR r.instance_id IS NULL THEN r.item_id END, t.enabled
 ORDER BY min({schema}.record_time(r.jsonb->>CASE r.status
       WHEN 'Open - Awaiting pickup' THEN 'holdShelfExpirationDate' ELSE 'requestExpirationDate' END))
 LIMIT $1::bigint`

// ExpireRequests implements commit.Store. Queues that fail, or in which nothing is closed, keep
// no others waiting: it passes over them and goes on with the next ones until ctx is done.
func (s *CommitStore) ExpireRequests(ctx context.Context, limit int) (closed int, failed error) {
	defer func() { s.obs.RequestsExpired(closed) }()
	stuck := []uuid.UUID{}
	for {
		var queues []commit.ExpiredQueue
		err := s.db.runTx(ctx, s.db.conns.Ordinary, seldomTx, "finding expired requests", func(tx pgx.Tx) (err error) {
			queues, err = collectRows(ctx, tx, expiredQueuesSQL, []any{seldom, limit, formatIDs(stuck)}, pgx.RowToStructByPos[commit.ExpiredQueue])
			return err
		})
		if err != nil {
			return closed, errors.Join(failed, err)
		}
		for _, queue := range queues {
			change, err := s.changeQueue(ctx, "closing expired requests", queue.Decide, rowLocks{
				instanceID: queue.InstanceID, itemIDs: queue.ItemIDs, titleLevel: queue.TitleLevel || len(queue.ItemIDs) == 0,
			})
			closed, failed = closed+change.Closed, errors.Join(failed, err)
			if ctx.Err() != nil {
				return closed, failed
			}
			if change.Closed == 0 {
				stuck = append(stuck, queue.ID())
			}
		}
		if len(queues) < limit || len(stuck) == 0 {
			return closed, failed
		}
	}
}

// changeQueue changes a queue for no caller. It uses the connections of slow queries, so that it delays
// no check-out.
func (s *CommitStore) changeQueue(
	ctx context.Context, op string, decide func(context.Context, commit.Seen) (commit.Change, error), locks rowLocks,
) (commit.Change, error) {
	locks.queue, locks.titleSetting = true, true
	o := operation[struct{}]{
		op: op, reads: changesQueue, writes: changesQueue, decide: decide, read: readRequest(uuid.Nil, uuid.Nil), locks: locks, write: writeChange,
	}
	change, _, err := o.runIn(ctx, s.db, s.db.conns.Ordinary, shortTx)
	if err != nil {
		return commit.Change{}, err
	}
	return change, nil
}
