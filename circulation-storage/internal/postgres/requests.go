package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

const (
	deleteRequestSQL = `DELETE FROM {schema}.request WHERE id = $1::uuid`

	pastRequestChangeSQL = `SELECT request_id FROM {schema}.request_change WHERE id = $1::uuid`
	addRequestChangeSQL  = `INSERT INTO {schema}.request_change (id, request_id) VALUES ($1::uuid, $2::uuid)`
)

// changesQueue names what commits of requests read and write, for errors.
const changesQueue = "a queue of requests"

// ChangeRequest implements commit.Store. It locks the instance too, so that changes of one title's
// requests come one after another.
func (s *CommitStore) ChangeRequest(ctx context.Context, c commit.RequestChange) error {
	_, err := run(ctx, s, operation[struct{}]{
		kind: c.Kind(), op: "changing a request", reads: changesQueue, writes: changesQueue, decide: c.Decide,
		read: readRequest(c.RequestID, c.ID),
		locks: rowLocks{
			instanceID: c.InstanceID, itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel || c.ItemID == uuid.Nil, titleSetting: true,
		},
		write: func(b *batch, change commit.Change, _ *struct{}) {
			if change.Repeated {
				return
			}
			if c.ID != uuid.Nil {
				b.query(addRequestChangeSQL, []any{c.ID, c.RequestID})
			}
			if c.Delete {
				b.query(deleteRequestSQL, []any{c.RequestID})
			}
			b.writeChange(change, nil, nil)
		},
	})
	return err
}

const insertRequestSQL = `INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`

// Place implements commit.Store. It locks the instance whether or not its items share a queue, so that
// requests of one title come one after another.
func (s *CommitStore) Place(ctx context.Context, p commit.Placement) (schemas.PlacedRequest, error) {
	return run(ctx, s, operation[schemas.PlacedRequest]{
		kind: commit.RequestPlacement, op: "placing a request", reads: changesQueue, writes: "a request",
		decide: p.Decide, violation: p.Violation,
		read: readRequest(p.RequestID, uuid.Nil),
		locks: rowLocks{
			instanceID: p.InstanceID, itemID: p.ItemID, openLoan: p.ChangesLoan(), queue: true, titleLevel: p.TitleLevel, titleSetting: true,
		},
		write: func(b *batch, change commit.Change, answer *schemas.PlacedRequest) {
			answer.Request = json.RawMessage(b.encode(change.Request))
			if change.Item != nil {
				answer.Item = json.RawMessage(b.encode(change.Item))
			}
			if change.Repeated {
				return
			}
			b.storeRecord(insertRequestSQL, change.Request, &answer.Request)
			b.writeChange(change, nil, &answer.Item)
		},
	})
}

// MoveRequest implements commit.Store.
func (s *CommitStore) MoveRequest(ctx context.Context, m commit.RequestMove) (schemas.PlacedRequest, error) {
	locks := rowLocks{
		instanceID: m.To.InstanceID, itemID: m.To.ItemID, itemIDs: []uuid.UUID{m.To.ItemID}, openLoan: m.To.ChangesLoan(),
		queue: true, titleLevel: m.To.TitleLevel, titleSetting: true,
	}
	if m.FromItemID != uuid.Nil {
		locks.itemIDs = append(locks.itemIDs, m.FromItemID)
	}
	return run(ctx, s, operation[schemas.PlacedRequest]{
		kind: commit.RequestMoving, op: "moving a request", reads: changesQueue, writes: changesQueue, decide: m.Decide,
		locks: locks, read: readRequest(m.To.RequestID, uuid.Nil),
		write: func(b *batch, change commit.Change, answer *schemas.PlacedRequest) {
			answer.Request, answer.Item = json.RawMessage(b.encode(change.Request)), json.RawMessage(b.encode(change.Item))
			b.writeChange(change, nil, nil)
		},
	})
}

// OrderQueue implements commit.Store.
func (s *CommitStore) OrderQueue(ctx context.Context, o commit.QueueOrder) (schemas.OrderedQueue, error) {
	return run(ctx, s, operation[schemas.OrderedQueue]{
		kind: commit.QueueOrdering, op: "ordering a queue of requests", reads: changesQueue, writes: changesQueue, decide: o.Decide,
		read: readRequest(uuid.Nil, uuid.Nil),
		locks: rowLocks{
			instanceID: o.InstanceID, itemID: o.ItemID, queue: true, titleLevel: o.InstanceID != uuid.Nil, titleSetting: true,
		},
		write: func(b *batch, change commit.Change, answer *schemas.OrderedQueue) {
			answer.Requests = make([]json.RawMessage, len(change.Queue))
			for i, r := range change.Queue {
				answer.Requests[i] = json.RawMessage(b.encode(r))
			}
			b.writeChange(change, nil, nil)
		},
	})
}
