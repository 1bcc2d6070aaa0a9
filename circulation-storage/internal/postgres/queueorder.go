package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// OrderQueue implements commit.QueueStore.
func (s *CommitStore) OrderQueue(ctx context.Context, o commit.QueueOrder) (schemas.OrderedQueue, error) {
	return runDecision(ctx, s.db, "ordering a queue of requests", o, readOrder, writeOrder)
}

func readOrder(ctx context.Context, tx pgx.Tx, o commit.QueueOrder) (commit.SeenOrder, error) {
	var seen commit.SeenOrder
	var b batch
	rows := b.lockRows(rowLocks{instanceID: o.InstanceID, itemID: o.ItemID, queue: true, titleLevel: o.InstanceID != uuid.Nil, titleSetting: true})
	b.query(clockSQL, nil, &seen.Now)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenOrder{}, fmt.Errorf("reading a queue of requests: %w", err)
	}
	seen.TitlesOn = rows.titlesOn
	var err error
	_, _, seen.Queue, err = rows.decode()
	return seen, err
}

func writeOrder(ctx context.Context, tx pgx.Tx, _ commit.QueueOrder, ordered commit.OrderedQueue) (schemas.OrderedQueue, error) {
	var b batch
	result := schemas.OrderedQueue{Requests: make([]json.RawMessage, len(ordered.Queue))}
	for i, r := range ordered.Queue {
		result.Requests[i] = json.RawMessage(b.encode(r))
	}
	return result, writeQueue(ctx, tx, &b, commit.ChangedQueue{Requests: ordered.Changed})
}
