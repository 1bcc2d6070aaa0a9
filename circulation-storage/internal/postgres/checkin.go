package postgres

import (
	"context"

	"github.com/google/uuid"

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

// CheckIn implements commit.Store. It looks for an earlier check-in with the same id after it locked
// the item: the earlier one held that lock until its COMMIT.
func (s *CommitStore) CheckIn(ctx context.Context, c commit.CheckIn) (schemas.CheckInResult, error) {
	return run(ctx, s, operation[schemas.CheckInResult]{
		kind: commit.CheckingIn, op: "committing a check-in", reads: "what a check-in changes", writes: "a check-in",
		decide: c.Decide, violation: c.Violation,
		locks: rowLocks{itemID: c.ItemID, openLoan: true, queue: true, titleLevel: c.TitleLevel},
		read: func(b *batch, seen *commit.Seen) {
			if c.ID != uuid.Nil {
				b.query(pastCheckInSQL, []any{c.ID}, &seen.Before, &seen.Past.Item, &seen.Past.Loan)
			}
			b.query(clockSQL, nil, &seen.Now)
		},
		write: func(b *batch, change commit.Change, answer *schemas.CheckInResult) {
			if change.Repeated {
				*answer = change.Past
				return
			}
			b.writeChange(change, &answer.Loan, &answer.Item)
			if c.ID != uuid.Nil {
				b.query(addCheckInSQL, []any{c.ID, c.ItemID, change.Loan.ID()})
			}
		},
	})
}
