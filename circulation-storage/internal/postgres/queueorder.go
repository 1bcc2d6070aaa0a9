package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// OrderQueue implements commit.QueueStore.
func (s *CommitStore) OrderQueue(ctx context.Context, o commit.QueueOrder) (schemas.OrderedQueue, error) {
	return runDecision(ctx, s.db, "ordering a queue of requests", o, readOrder, writeOrder)
}

func readOrder(ctx context.Context, tx pgx.Tx, o commit.QueueOrder) (commit.SeenQueue, error) {
	return readQueue(ctx, tx, uuid.Nil, uuid.Nil, rowLocks{
		instanceID: o.InstanceID, itemID: o.ItemID, queue: true, titleLevel: o.InstanceID != uuid.Nil, titleSetting: true,
	})
}

func writeOrder(ctx context.Context, tx pgx.Tx, _ commit.QueueOrder, ordered commit.OrderedQueue) (schemas.OrderedQueue, error) {
	var b batch
	result := schemas.OrderedQueue{Requests: make([]json.RawMessage, len(ordered.Queue))}
	for i, r := range ordered.Queue {
		result.Requests[i] = json.RawMessage(b.encode(r))
	}
	return result, writeQueue(ctx, tx, &b, commit.ChangedQueue{Requests: ordered.Changed})
}
