package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// A commit locks the loan's id first and looks whether it was given up last, in a statement of its
// own. So its look sees a settlement that it waited for.
const isGivenUpSQL = `SELECT EXISTS (SELECT FROM {schema}.given_up_check_out WHERE id = $1::uuid)`

// The statements that settle a check-out, behind lockCheckOutSQL. Each has the loan's id in $1.
const (
	// A deleted loan was lent. The history has it, with the entry of the deletion at least.
	deletedLoanSQL = `
SELECT h.jsonb->>'loan' FROM {schema}.loan_history h
 WHERE h.loan_id = $1::uuid AND NOT EXISTS (SELECT FROM {schema}.loan WHERE id = $1::uuid)
 ORDER BY h.jsonb->>'createdDate' LIMIT 1`

	itemOfLoanSQL = `SELECT i.jsonb::text FROM {schema}.item i JOIN {schema}.loan l ON l.item_id = i.id WHERE l.id = $1::uuid`

	// A check-out that is settled again is given up for another day.
	giveUpSQL = `
INSERT INTO {schema}.given_up_check_out (id)
SELECT $1::uuid
 WHERE NOT EXISTS (SELECT FROM {schema}.loan WHERE id = $1::uuid)
   AND NOT EXISTS (SELECT FROM {schema}.loan_history WHERE loan_id = $1::uuid)
ON CONFLICT ON CONSTRAINT given_up_check_out_pkey DO UPDATE SET created_date = excluded.created_date`
)

// SettleCheckOut implements commit.Store. The flush makes the COMMIT wait also if nothing was
// written, because a primary that was cut off from its standby does not know what its successor
// committed.
func (s *CommitStore) SettleCheckOut(ctx context.Context, loanID uuid.UUID) (schemas.SettledCheckOut, error) {
	var settled schemas.SettledCheckOut
	err := s.db.inTx(ctx, "settling a check-out", func(tx pgx.Tx) error {
		settled = schemas.SettledCheckOut{}
		var b batch
		b.lockRows(rowLocks{checkOutID: loanID}, new(commit.Seen))
		b.query(shareLoanSQL, []any{loanID}, &settled.Loan)
		b.query(deletedLoanSQL, []any{loanID}, &settled.Loan)
		b.query(itemOfLoanSQL, []any{loanID}, &settled.Item)
		b.query(giveUpSQL, []any{loanID})
		b.query(flushSQL, nil)
		return b.send(ctx, tx)
	})
	if err != nil {
		return schemas.SettledCheckOut{}, err
	}
	settled.GivenUp = settled.Loan == nil
	return settled, nil
}
