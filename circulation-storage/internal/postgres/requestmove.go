package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

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
