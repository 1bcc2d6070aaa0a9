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
	lockOpenLoanSQL = `SELECT jsonb::text FROM {schema}.loan WHERE item_id = $1::uuid AND is_open FOR UPDATE`
	pastCheckInSQL  = `SELECT item_id, item, loan FROM {schema}.check_in WHERE id = $1::uuid`

	// addCheckInSQL stands after the statements that write item and loan, and keeps
	// what they are then.
	addCheckInSQL = `
INSERT INTO {schema}.check_in (id, item_id, item, loan)
SELECT $1::uuid, i.id, i.jsonb::text, (SELECT l.jsonb::text FROM {schema}.loan l WHERE l.id = nullif($3::text, '')::uuid)
  FROM {schema}.item i WHERE i.id = $2::uuid`

	// past is when a check-in c is a day old. A clock that was set back makes it last
	// longer, but not for ever.
	past = `c.created_date NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day'`

	sweepCheckInsSQL = `
WITH old AS (SELECT c.id FROM {schema}.check_in c WHERE ` + past + ` LIMIT $1::bigint FOR UPDATE SKIP LOCKED)
DELETE FROM {schema}.check_in c USING old WHERE c.id = old.id AND ` + past + `
RETURNING ` + notDurable
)

// CheckIn implements commit.Store.
func (s *CommitStore) CheckIn(ctx context.Context, c commit.CheckIn) (schemas.CheckInResult, commit.Outcome, error) {
	var result schemas.CheckInResult
	var outcome commit.Outcome
	err := s.db.inTx(ctx, "committing a check-in", func(tx pgx.Tx) error {
		seen, err := lookCheckIn(ctx, tx, c)
		if err != nil {
			return err
		}
		returning, err := c.Decide(ctx, seen)
		if err != nil {
			return err
		}
		if returning.Repeated != nil {
			result, outcome = *returning.Repeated, commit.Repeated
			return nil
		}
		outcome = commit.Committed
		result, err = takeBack(ctx, tx, c, returning)
		return err
	})
	if err != nil { // also one that came after the writes
		return schemas.CheckInResult{}, "", err
	}
	return result, outcome, nil
}

// SweepCheckIns implements commit.Store.
func (s *CommitStore) SweepCheckIns(ctx context.Context, limit int) (int, error) {
	statement, err := query(ctx, sweepCheckInsSQL)
	if err != nil {
		return 0, err
	}
	tag, err := s.db.pool.Exec(ctx, statement, limit)
	return int(tag.RowsAffected()), toFault("sweeping check-ins", err)
}

func lookCheckIn(ctx context.Context, tx pgx.Tx, c commit.CheckIn) (commit.SeenReturn, error) {
	var seen commit.SeenReturn
	var item, loan, answeredItem, answeredLoan *string
	var answeredFor uuid.UUID
	var b batch
	if c.TitleLevel {
		b.lockTitle(c.ItemID)
	}
	b.one(lockItemSQL, []any{c.ItemID}, &item)
	if c.ID != uuid.Nil {
		b.one(pastCheckInSQL, []any{c.ID}, &answeredFor, &answeredItem, &answeredLoan)
	}
	b.one(lockOpenLoanSQL, []any{c.ItemID}, &loan)
	queue := b.lockQueue(c.ItemID, c.TitleLevel)
	b.one(clockSQL, nil, &seen.Now)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenReturn{}, fmt.Errorf("reading what a check-in changes: %w", err)
	}
	if answeredItem != nil {
		seen.Before = &commit.PastCheckIn{
			ItemID: answeredFor, Result: schemas.CheckInResult{Loan: raw(answeredLoan), Item: raw(answeredItem)},
		}
	}
	var err error
	if seen.Item, err = decodeStored(item); err != nil {
		return commit.SeenReturn{}, err
	}
	if seen.Loan, err = decodeStored(loan); err != nil {
		return commit.SeenReturn{}, err
	}
	seen.Queue, err = decodeQueue(*queue)
	return seen, err
}

func takeBack(ctx context.Context, tx pgx.Tx, c commit.CheckIn, r commit.Returning) (schemas.CheckInResult, error) {
	var loan, item *string
	var b batch
	b.write(updateItemSQL, r.Item, &item)
	if r.Loan != nil {
		b.write(updateLoanSQL, r.Loan, &loan)
		b.session(r.Session)
	}
	b.requests(r.Requests)
	b.event(r.Event)
	if c.ID != uuid.Nil {
		b.one(addCheckInSQL, []any{c.ID, c.ItemID, r.Loan.ID()})
	}
	if err := b.send(ctx, tx); err != nil {
		return schemas.CheckInResult{}, notWritten("a check-in", err, c.Violation)
	}
	return schemas.CheckInResult{Loan: raw(loan), Item: raw(item)}, nil
}
