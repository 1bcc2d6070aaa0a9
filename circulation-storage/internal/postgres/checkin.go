package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/checkout"
	"checkoutlock/schemas"
)

const lockOpenLoanSQL = `SELECT jsonb::text FROM {schema}.loan WHERE item_id = $1::uuid AND is_open FOR UPDATE`

// CheckIn implements checkout.Store.
func (s *CommitStore) CheckIn(ctx context.Context, c checkout.CheckIn) (schemas.CheckInResult, error) {
	var result schemas.CheckInResult
	err := s.db.inTx(ctx, "committing a check-in", func(tx pgx.Tx) error {
		seen, err := lookCheckIn(ctx, tx, c)
		if err != nil {
			return err
		}
		returning, err := c.Decide(ctx, seen)
		if err != nil {
			return err
		}
		result, err = takeBack(ctx, tx, returning)
		return err
	})
	if err != nil {
		return schemas.CheckInResult{}, err
	}
	return result, nil
}

func lookCheckIn(ctx context.Context, tx pgx.Tx, c checkout.CheckIn) (checkout.SeenReturn, error) {
	var seen checkout.SeenReturn
	var item, loan *string
	var b batch
	if c.TitleLevel {
		b.lockTitle(c.ItemID)
	}
	b.one(lockItemSQL, []any{c.ItemID}, &item)
	b.one(lockOpenLoanSQL, []any{c.ItemID}, &loan)
	queue := b.lockQueue(c.ItemID, c.TitleLevel)
	b.one(clockSQL, nil, &seen.Now)
	if err := b.send(ctx, tx); err != nil {
		return checkout.SeenReturn{}, fmt.Errorf("reading what a check-in changes: %w", err)
	}
	var err error
	if seen.Item, err = decodeStored(item); err != nil {
		return checkout.SeenReturn{}, err
	}
	if seen.Loan, err = decodeStored(loan); err != nil {
		return checkout.SeenReturn{}, err
	}
	seen.Queue, err = decodeQueue(*queue)
	return seen, err
}

func takeBack(ctx context.Context, tx pgx.Tx, r checkout.Returning) (schemas.CheckInResult, error) {
	var loan, item *string
	var b batch
	b.write(updateItemSQL, r.Item, &item)
	if r.Loan != nil {
		b.write(updateLoanSQL, r.Loan, &loan)
		b.session(r.Session)
	}
	b.requests(r.Requests)
	b.event(r.Event)
	if err := b.send(ctx, tx); err != nil {
		if taken := placeTaken(err); taken != nil {
			return schemas.CheckInResult{}, taken
		}
		return schemas.CheckInResult{}, fmt.Errorf("writing a check-in: %w", err)
	}
	return schemas.CheckInResult{Loan: raw(loan), Item: raw(item)}, nil
}
