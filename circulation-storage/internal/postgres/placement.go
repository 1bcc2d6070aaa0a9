package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

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
