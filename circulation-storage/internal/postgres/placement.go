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

var _ commit.Placements = (*CommitStore)(nil)

// The instance is locked whether or not titles share a queue, so that requests of
// one title come one after another; check-outs lock it for a shared queue only.
const (
	lockInstanceSQL      = `SELECT true FROM {schema}.instance WHERE id = $1::uuid FOR NO KEY UPDATE`
	lockInstanceQueueSQL = `SELECT jsonb::text FROM {schema}.request WHERE instance_id = $1::uuid AND is_open ORDER BY id FOR UPDATE`
	lookRequestSQL       = `SELECT clock_timestamp(), (SELECT jsonb::text FROM {schema}.request WHERE id = $1::uuid)`
	insertRequestSQL     = `INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`
)

// Place implements commit.Placements.
func (s *CommitStore) Place(ctx context.Context, p commit.Placement) (schemas.PlacedRequest, error) {
	var result schemas.PlacedRequest
	err := s.db.inTx(ctx, "placing a request", func(tx pgx.Tx) error {
		seen, err := lookPlacement(ctx, tx, p)
		if err != nil {
			return err
		}
		placed, err := p.Decide(ctx, seen)
		if err != nil {
			return err
		}
		result, err = place(ctx, tx, p, placed)
		return err
	})
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	return result, nil
}

func lookPlacement(ctx context.Context, tx pgx.Tx, p commit.Placement) (commit.SeenQueue, error) {
	var seen commit.SeenQueue
	var item, request *string
	var b batch
	b.one(lockInstanceSQL, []any{p.InstanceID}, &seen.Instance)
	if p.ItemID != uuid.Nil {
		b.one(lockItemSQL, []any{p.ItemID}, &item)
	}
	queue := new([]string)
	if p.TitleLevel {
		b.many(lockInstanceQueueSQL, []any{p.InstanceID}, queue)
	} else {
		queue = b.lockQueue(p.ItemID, false)
	}
	b.one(lookRequestSQL, []any{p.RequestID}, &seen.Now, &request)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenQueue{}, fmt.Errorf("reading the queue of a request: %w", err)
	}
	var err error
	if seen.Item, err = decodeStored(item); err != nil {
		return commit.SeenQueue{}, err
	}
	if seen.Request, err = decodeStored(request); err != nil {
		return commit.SeenQueue{}, err
	}
	seen.Queue, err = decodeQueue(*queue)
	return seen, err
}

func place(ctx context.Context, tx pgx.Tx, p commit.Placement, placed commit.Placed) (schemas.PlacedRequest, error) {
	request, item, err := texts(placed)
	if err != nil || placed.Repeated {
		return schemas.PlacedRequest{Request: raw(request), Item: raw(item)}, err
	}
	var b batch
	b.write(insertRequestSQL, placed.Request, &request)
	if placed.Pages {
		b.write(updateItemSQL, placed.Item, &item)
	}
	if err := b.send(ctx, tx); err != nil {
		return schemas.PlacedRequest{}, notWritten("a request", err, p.Violation)
	}
	return schemas.PlacedRequest{Request: raw(request), Item: raw(item)}, nil
}

// texts are both records as they are now.
func texts(placed commit.Placed) (request, item *string, err error) {
	doc, err := json.Marshal(placed.Request)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the request: %w", err)
	}
	text := string(doc)
	if placed.Item == nil {
		return &text, nil, nil
	}
	if doc, err = json.Marshal(placed.Item); err != nil {
		return nil, nil, fmt.Errorf("writing the item: %w", err)
	}
	itemText := string(doc)
	return &text, &itemText, nil
}
