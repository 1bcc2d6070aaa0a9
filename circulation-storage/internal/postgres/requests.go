package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
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

const insertRequestSQL = `INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`

// Place implements commit.Store.
func (s *CommitStore) Place(ctx context.Context, p commit.Placement) (schemas.PlacedRequest, error) {
	return runDecision(ctx, s.db, "placing a request", p, readPlacement, writePlacement)
}

// readPlacement locks the instance whether or not its items share a queue, so that
// requests of one title come one after another.
func readPlacement(ctx context.Context, tx pgx.Tx, p commit.Placement) (commit.SeenQueue, error) {
	return readQueue(ctx, tx, p.RequestID, uuid.Nil, rowLocks{
		instanceID: p.InstanceID, itemID: p.ItemID, openLoan: p.ChangesLoan(), queue: true, titleLevel: p.TitleLevel, titleSetting: true,
	})
}

// writePlacement returns request and item as they are then. A repeat writes nothing.
func writePlacement(ctx context.Context, tx pgx.Tx, p commit.Placement, placed commit.Placed) (schemas.PlacedRequest, error) {
	var b batch
	result := schemas.PlacedRequest{Request: json.RawMessage(b.encode(placed.Request))}
	if placed.Item != nil {
		result.Item = json.RawMessage(b.encode(placed.Item))
	}
	if placed.Repeated {
		return result, b.err
	}
	b.storeRecord(insertRequestSQL, placed.Request, &result.Request)
	if placed.Pages {
		b.storeRecord(updateItemSQL, placed.Item, &result.Item)
	}
	if placed.Loan != nil {
		b.storeRecord(updateLoanSQL, placed.Loan)
	}
	b.addEvent(placed.Event)
	b.addRequestEvents(ctx, commit.RequestCreated, placed.Request)
	if err := b.send(ctx, tx); err != nil {
		return schemas.PlacedRequest{}, explainWriteError("a request", err, p.Violation)
	}
	return result, nil
}

// MoveRequest implements commit.QueueStore.
func (s *CommitStore) MoveRequest(ctx context.Context, m commit.RequestMove) (schemas.PlacedRequest, error) {
	return runDecision(ctx, s.db, "moving a request", m, readMove, writeMove)
}

func readMove(ctx context.Context, tx pgx.Tx, m commit.RequestMove) (commit.SeenQueue, error) {
	locks := rowLocks{
		instanceID: m.To.InstanceID, itemID: m.To.ItemID, itemIDs: []uuid.UUID{m.To.ItemID}, openLoan: m.To.ChangesLoan(),
		queue: true, titleLevel: m.To.TitleLevel, titleSetting: true,
	}
	if m.FromItemID != uuid.Nil {
		locks.itemIDs = append(locks.itemIDs, m.FromItemID)
	}
	return readQueue(ctx, tx, m.To.RequestID, uuid.Nil, locks)
}

// writeMove returns request and item as they are then. A repeat writes nothing.
func writeMove(ctx context.Context, tx pgx.Tx, _ commit.RequestMove, moved commit.Moved) (schemas.PlacedRequest, error) {
	var b batch
	result := schemas.PlacedRequest{Request: json.RawMessage(b.encode(moved.Placed.Request)), Item: json.RawMessage(b.encode(moved.Placed.Item))}
	if moved.Placed.Loan != nil {
		b.storeRecord(updateLoanSQL, moved.Placed.Loan)
	}
	b.addEvent(moved.Placed.Event)
	return result, writeQueue(ctx, tx, &b, moved.Changed)
}

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
