package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

const (
	deleteRequestSQL    = `DELETE FROM {schema}.request WHERE id = $1::uuid`
	addRequestChangeSQL = `INSERT INTO {schema}.request_change (id, request_id) VALUES ($1::uuid, $2::uuid)`
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
			b.noteRequestChange(c.ID, c.RequestID)
			if c.Delete {
				b.query(deleteRequestSQL, []any{c.RequestID})
			}
			b.writeChange(change, nil, nil)
		},
	})
	return err
}

// noteRequestChange adds the statement by which repeats of the change are recognised, none for Nil.
func (b *batch) noteRequestChange(changeID, requestID uuid.UUID) {
	if changeID != uuid.Nil {
		b.query(addRequestChangeSQL, []any{changeID, requestID})
	}
}

const insertRequestSQL = `INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`

// Place implements commit.Store. It locks the instance whether or not its items share a queue, so that
// requests of one title come one after another.
func (s *CommitStore) Place(ctx context.Context, p commit.Placement) (schemas.PlacedRequest, error) {
	return run(ctx, s, operation[schemas.PlacedRequest]{
		kind: commit.RequestPlacement, op: "placing a request", reads: changesQueue, writes: "a request", decide: p.Decide,
		read: readRequest(p.RequestID, p.ID),
		locks: rowLocks{
			instanceID: p.InstanceID, itemID: p.ItemID, openLoan: p.ChangesLoan(), queue: true, titleLevel: p.TitleLevel, joins: true, titleSetting: true,
		},
		answer: answerPlaced,
		write: func(b *batch, change commit.Change, answer *schemas.PlacedRequest) {
			b.noteRequestChange(p.ID, p.RequestID)
			b.storeRecord(insertRequestSQL, change.Request, &answer.Request)
			b.writeChange(change, nil, &answer.Item)
		},
	})
}

// answerPlaced answers the request and its item as they are by then.
func answerPlaced(b *batch, change commit.Change, answer *schemas.PlacedRequest) {
	answer.Request = json.RawMessage(b.encode(change.Request))
	if change.Item != nil {
		answer.Item = json.RawMessage(b.encode(change.Item))
	}
}

// MoveRequest implements commit.Store.
func (s *CommitStore) MoveRequest(ctx context.Context, m commit.RequestMove) (schemas.PlacedRequest, error) {
	locks := rowLocks{
		instanceID: m.To.InstanceID, itemID: m.To.ItemID, itemIDs: []uuid.UUID{m.To.ItemID}, openLoan: m.To.ChangesLoan(),
		queue: true, titleLevel: m.To.TitleLevel, joins: true, titleSetting: true,
	}
	if m.FromItemID != uuid.Nil {
		locks.itemIDs = append(locks.itemIDs, m.FromItemID)
	}
	return run(ctx, s, operation[schemas.PlacedRequest]{
		kind: commit.RequestMoving, op: "moving a request", reads: changesQueue, writes: changesQueue, decide: m.Decide,
		locks: locks, read: readRequest(m.To.RequestID, m.To.ID),
		answer: answerPlaced,
		write: func(b *batch, change commit.Change, _ *schemas.PlacedRequest) {
			b.noteRequestChange(m.To.ID, m.To.RequestID)
			b.writeChange(change, nil, nil)
		},
	})
}

// OrderQueue implements commit.Store.
func (s *CommitStore) OrderQueue(ctx context.Context, o commit.QueueOrder) (schemas.OrderedQueue, error) {
	return run(ctx, s, operation[schemas.OrderedQueue]{
		kind: commit.QueueOrdering, op: "ordering a queue of requests", reads: changesQueue, writes: changesQueue, decide: o.Decide,
		read: readRequest(uuid.Nil, o.ID),
		locks: rowLocks{
			instanceID: o.InstanceID, itemID: o.ItemID, queue: true, titleLevel: o.InstanceID != uuid.Nil, titleSetting: true,
		},
		answer: func(b *batch, change commit.Change, answer *schemas.OrderedQueue) {
			answer.Requests = convert.All(change.Queue, func(r records.Record) json.RawMessage { return json.RawMessage(b.encode(r)) })
		},
		write: func(b *batch, change commit.Change, _ *schemas.OrderedQueue) {
			b.noteRequestChange(o.ID, o.FirstID)
			b.writeChange(change, nil, nil)
		},
	})
}

// isWaiting is the condition of an open request r of an item. It is written so that it implies no
// partial index: without statistics, PostgreSQL reads all open requests of the library by one, beside
// those of the item.
const isWaiting = `r.is_open IS NOT FALSE`

// otherRequestsSQL reads the requests of other titles for item $1 and the items of a title's queue, except those
// in that queue. The items were moved since, and each of their requests has a position of its own. $2 is the
// title, NULL for the item's, and $3 says whether the queue has what waits for the item.
const (
	otherRequestsSQL = `
SELECT r.jsonb::text FROM {schema}.request r
 WHERE r.item_id = ANY (ARRAY(SELECT item_id FROM {schema}.request WHERE instance_id = ` + titleOfQueue + ` AND is_open) || $1::uuid)
   AND ` + isWaiting + ` AND r.instance_id IS DISTINCT FROM ` + titleOfQueue + `
   AND NOT ($3::boolean AND r.item_id = $1::uuid AND ` + isOfItem + `)`
	titleOfQueue = `coalesce($2::uuid, ` + instanceOfItem + `)`
)

const getRequestSQL = `SELECT clock_timestamp(), (SELECT jsonb::text FROM {schema}.request WHERE id = $1::uuid),
	(SELECT request_id FROM {schema}.request_change WHERE id = $2::uuid)`

// readRequest adds the statement that reads a request and an earlier change, Nil for none, after the
// locks. The request needs no lock of its own, because commits refuse one that is open and not in the
// queue. An earlier change held the locks until its COMMIT. One statement reads both, because a change
// may have deleted the request.
func readRequest(requestID, changeID uuid.UUID) func(*batch, *commit.Seen) {
	return func(b *batch, seen *commit.Seen) {
		b.query(getRequestSQL, []any{requestID, changeID}, &seen.Now, (*stored)(&seen.Request), &seen.Before)
	}
}

// All in one statement, because positions are compared at its end: one by one,
// requests that change places would collide.
const updateRequestsSQL = `
UPDATE {schema}.request r SET jsonb = new.doc::jsonb
  FROM unnest($1::text[]) AS new(doc)
 WHERE r.id = (new.doc::jsonb->>'id')::uuid`

// updateRequests adds statements that write those requests of a queue that changed.
func (b *batch) updateRequests(changed []records.Record) {
	if len(changed) == 0 {
		return
	}
	docs := convert.All(changed, func(r records.Record) string { return b.encode(r) })
	b.query(updateRequestsSQL, []any{docs})
}
