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

const (
	deleteRequestSQL = `DELETE FROM {schema}.request WHERE id = $1::uuid`

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
		b.query(deleteRequestSQL, []any{c.RequestID})
		b.addRequestEvents(ctx, commit.RequestDeleted, changed.Deleted)
	}
	return struct{}{}, writeQueue(ctx, tx, &b, changed)
}

// readRequest locks the instance too, so that changes of one title's requests come one after
// another. It reads the request without a lock, because one that is not in the queue is refused. An
// earlier change with the same id held the locks until its COMMIT, so it is looked for after them, and
// after the request, which it may have deleted.
func readRequest(ctx context.Context, tx pgx.Tx, c commit.RequestChange) (commit.SeenRequest, error) {
	var seen commit.SeenRequest
	var request json.RawMessage
	var b batch
	rows := b.lockRows(rowLocks{instanceID: c.InstanceID, itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel || c.ItemID == uuid.Nil, titleSetting: true})
	b.query(placedRequestSQL, []any{c.RequestID}, &seen.Now, &request)
	b.query(pastRequestChangeSQL, []any{c.ID}, &seen.Before)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenRequest{}, fmt.Errorf("reading the queue of a request: %w", err)
	}
	seen.TitlesOn = rows.titlesOn
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
	b.updateRequests(ctx, changed.Requests)
	if len(b.statements) == 0 {
		return nil
	}
	if err := b.send(ctx, tx); err != nil {
		return explainWriteError("a queue of requests", err, func(string) error { return nil })
	}
	return nil
}
