package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

const (
	pastCheckInSQL = `SELECT item_id, item, loan FROM {schema}.check_in WHERE id = $1::uuid`

	// addCheckInSQL stands after the statements that write item and loan, and keeps
	// what they are then.
	addCheckInSQL = `
INSERT INTO {schema}.check_in (id, item_id, item, loan)
SELECT $1::uuid, i.id, i.jsonb::text, (SELECT l.jsonb::text FROM {schema}.loan l WHERE l.id = nullif($3::text, '')::uuid)
  FROM {schema}.item i WHERE i.id = $2::uuid`
)

// CheckIn implements commit.Store.
func (s *CommitStore) CheckIn(ctx context.Context, c commit.CheckIn) (schemas.CheckInResult, commit.Outcome, error) {
	done, err := runDecision(ctx, s.db, "committing a check-in", c, readCheckIn, writeCheckIn)
	return done.result, done.outcome, err
}

// readCheckIn looks for an earlier check-in with the same id after it locked the item.
// The earlier one held that lock until its COMMIT.
func readCheckIn(ctx context.Context, tx pgx.Tx, c commit.CheckIn) (commit.SeenReturn, error) {
	var seen commit.SeenReturn
	var past commit.PastCheckIn
	var b batch
	rows := b.lockRows(rowLocks{itemID: c.ItemID, openLoan: true, queue: true, titleLevel: c.TitleLevel})
	if c.ID != uuid.Nil {
		b.query(pastCheckInSQL, []any{c.ID}, &past.ItemID, &past.Result.Item, &past.Result.Loan)
	}
	b.query(clockSQL, nil, &seen.Now)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenReturn{}, fmt.Errorf("reading what a check-in changes: %w", err)
	}
	if past.Result.Item != nil {
		seen.Before = &past
	}
	var err error
	seen.Item, seen.Loan, seen.Queue, err = rows.decode()
	return seen, err
}

// writeCheckIn writes nothing for a repeat.
func writeCheckIn(ctx context.Context, tx pgx.Tx, c commit.CheckIn, r commit.Returning) (ended[schemas.CheckInResult], error) {
	if r.Repeated != nil {
		return ended[schemas.CheckInResult]{*r.Repeated, commit.Repeated}, nil
	}
	var result schemas.CheckInResult
	var b batch
	b.storeRecord(updateItemSQL, r.Item, &result.Item)
	if r.Loan != nil {
		b.storeRecord(updateLoanSQL, r.Loan, &result.Loan)
	}
	if r.Session != nil {
		b.addSession(r.Session)
	}
	b.updateRequests(ctx, r.Requests)
	b.addEvent(r.Event)
	if c.ID != uuid.Nil {
		b.query(addCheckInSQL, []any{c.ID, c.ItemID, r.Loan.ID()})
	}
	if err := b.send(ctx, tx); err != nil {
		return ended[schemas.CheckInResult]{}, explainWriteError("a check-in", err, c.Violation)
	}
	return ended[schemas.CheckInResult]{result, commit.Committed}, nil
}
