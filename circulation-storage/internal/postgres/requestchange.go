package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
)

var _ commit.QueueStore = (*CommitStore)(nil)

const (
	// deleteRequestSQL writes an event only for what it deletes, because no lock may guard a closed
	// request.
	deleteRequestSQL = `
WITH deleted AS (DELETE FROM {schema}.request WHERE id = $1::uuid RETURNING id)
INSERT INTO {schema}.outbox (event_type, payload) SELECT $2::text, $3::jsonb FROM deleted`

	pastRequestChangeSQL = `SELECT request_id FROM {schema}.request_change WHERE id = $1::uuid`
	addRequestChangeSQL  = `INSERT INTO {schema}.request_change (id, request_id) VALUES ($1::uuid, $2::uuid)`
)

// ChangeRequest implements commit.QueueStore.
func (s *CommitStore) ChangeRequest(ctx context.Context, c commit.RequestChange) error {
	_, err := runDecision(ctx, s.db, "changing a request", c, readRequest, writeChange)
	return err
}

func writeChange(ctx context.Context, tx pgx.Tx, c commit.RequestChange, changed commit.ChangedQueue) (struct{}, error) {
	var b batch
	if changed.Repeated {
		return struct{}{}, nil
	}
	if c.ID != uuid.Nil {
		b.query(addRequestChangeSQL, []any{c.ID, c.RequestID})
	}
	if c.Delete {
		e := commit.NewRequestEvent(ctx, commit.RequestDeleted, changed.Deleted)
		b.query(deleteRequestSQL, []any{c.RequestID, e.Type, b.encode(e.Payload)})
	}
	return struct{}{}, writeQueue(ctx, tx, &b, changed)
}

// readRequest locks the instance too, so that changes of one title's requests come one after another.
func readRequest(ctx context.Context, tx pgx.Tx, c commit.RequestChange) (commit.SeenQueue, error) {
	return readQueue(ctx, tx, c.RequestID, c.ID, rowLocks{
		instanceID: c.InstanceID, itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel || c.ItemID == uuid.Nil, titleSetting: true,
	})
}

// writeQueue adds the changes of a queue to the batch and sends it.
func writeQueue(ctx context.Context, tx pgx.Tx, b *batch, changed commit.ChangedQueue) error {
	for _, item := range changed.Items {
		b.storeRecord(updateItemSQL, item)
	}
	b.updateRequests(ctx, changed.Requests)
	if len(b.statements) == 0 {
		return nil
	}
	if err := b.send(ctx, tx); err != nil {
		return explainWriteError("a queue of requests", err, func(string) error { return nil })
	}
	return nil
}
