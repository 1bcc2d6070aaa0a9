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

// MoveRequest implements commit.QueueStore.
func (s *CommitStore) MoveRequest(ctx context.Context, m commit.RequestMove) (schemas.PlacedRequest, error) {
	return runDecision(ctx, s.db, "moving a request", m, readMove, writeMove)
}

func readMove(ctx context.Context, tx pgx.Tx, m commit.RequestMove) (commit.SeenMove, error) {
	var seen commit.SeenMove
	var request json.RawMessage
	locks := rowLocks{
		instanceID: m.To.InstanceID, itemID: m.To.ItemID, itemIDs: []uuid.UUID{m.To.ItemID}, openLoan: m.To.ChangesLoan(),
		queue: true, titleLevel: m.To.TitleLevel, titleSetting: true,
	}
	if m.FromItemID != uuid.Nil {
		locks.itemIDs = append(locks.itemIDs, m.FromItemID)
	}
	var b batch
	rows := b.lockRows(locks)
	b.query(placedRequestSQL, []any{m.To.RequestID}, &seen.Now, &request)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenMove{}, fmt.Errorf("reading the queues of a request: %w", err)
	}
	seen.TitlesOn = rows.titlesOn
	var err error
	if seen.Request, err = decodeStored(request); err != nil {
		return commit.SeenMove{}, err
	}
	if seen.Items, err = decodeAll(rows.items); err != nil {
		return commit.SeenMove{}, err
	}
	_, seen.Loan, seen.Queue, err = rows.decode()
	return seen, err
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
