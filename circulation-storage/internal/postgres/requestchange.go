package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
)

var _ commit.QueueStore = (*CommitStore)(nil)

const deleteRequestSQL = `DELETE FROM {schema}.request WHERE id = $1::uuid`

// ChangeRequest implements commit.QueueStore.
func (s *CommitStore) ChangeRequest(ctx context.Context, c commit.RequestChange) error {
	_, err := runDecision(ctx, s.db, "changing a request", c, readRequest, writeChange)
	return err
}

func writeChange(ctx context.Context, tx pgx.Tx, c commit.RequestChange, changed commit.ChangedQueue) (struct{}, error) {
	var b batch
	if c.Delete {
		b.query(deleteRequestSQL, []any{c.RequestID})
	}
	return struct{}{}, writeQueue(ctx, tx, &b, changed)
}

// readRequest locks the instance too, so that changes of one title's requests come one after
// another. It reads the request without a lock, because one that is not in the queue is refused.
func readRequest(ctx context.Context, tx pgx.Tx, c commit.RequestChange) (commit.SeenRequest, error) {
	var seen commit.SeenRequest
	var request json.RawMessage
	var b batch
	rows := b.lockRows(rowLocks{instanceID: c.InstanceID, itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel || c.ItemID == uuid.Nil})
	b.query(placedRequestSQL, []any{c.RequestID}, &seen.Now, &request)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenRequest{}, fmt.Errorf("reading the queue of a request: %w", err)
	}
	var err error
	if seen.Request, err = decodeStored(request); err != nil {
		return commit.SeenRequest{}, err
	}
	seen.Item, _, seen.Queue, err = rows.decode()
	return seen, err
}

// writeQueue adds the changes of a queue to the batch and sends it.
func writeQueue(ctx context.Context, tx pgx.Tx, b *batch, changed commit.ChangedQueue) error {
	for _, item := range changed.Items {
		b.storeRecord(updateItemSQL, item)
	}
	b.updateRequests(changed.Requests)
	if len(b.statements) == 0 {
		return nil
	}
	if err := b.send(ctx, tx); err != nil {
		return explainWriteError("a queue of requests", err, func(string) error { return nil })
	}
	return nil
}
