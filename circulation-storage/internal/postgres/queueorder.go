package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// OrderQueue implements commit.QueueStore.
func (s *CommitStore) OrderQueue(ctx context.Context, o commit.QueueOrder) (schemas.OrderedQueue, error) {
	var result schemas.OrderedQueue
	err := s.db.inTx(ctx, "ordering a queue of requests", func(tx pgx.Tx) error {
		var now time.Time
		var read, write batch
		rows := read.lockRows(rowLocks{instanceID: o.InstanceID, itemID: o.ItemID, queue: true, titleLevel: o.InstanceID != uuid.Nil})
		read.query(clockSQL, nil, &now)
		if err := read.send(ctx, tx); err != nil {
			return fmt.Errorf("reading a queue of requests: %w", err)
		}
		_, _, queue, err := rows.decode()
		if err != nil {
			return err
		}
		ordered, changed, err := o.Decide(ctx, now, queue)
		if err != nil {
			return err
		}
		result = schemas.OrderedQueue{Requests: make([]json.RawMessage, len(ordered))}
		for i, r := range ordered {
			result.Requests[i] = json.RawMessage(write.encode(r))
		}
		return writeQueue(ctx, tx, &write, commit.ChangedQueue{Requests: changed})
	})
	if err != nil {
		return schemas.OrderedQueue{}, err
	}
	return result, nil
}
