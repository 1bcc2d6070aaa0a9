package postgres

import (
	"context"

	"checkoutlock/circulation-storage/internal/commit"
)

// FOLIO's item limit asks neither for the loan's policy nor for the patron's group
// or location; a loan type counts when it is the one in force for the item.
//
// The lock is looked up by the statement that counts, so both see one server at one
// moment: a pool may lead to an old primary and a new one after a failover.
const countOpenLoansSQL = `
SELECT count(*),
       $4::uuid IS NULL OR EXISTS (SELECT FROM {schema}.check_out_lock k WHERE k.id = $4::uuid AND k.user_id = $1::uuid)
  FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id
 WHERE l.is_open AND l.user_id = $1::uuid
   AND i.jsonb->'status'->>'name' <> 'Claimed returned'
   AND ($2::uuid IS NULL OR i.material_type_id = $2::uuid)
   AND ($3::uuid IS NULL OR coalesce(i.temporary_loan_type_id, i.permanent_loan_type_id) = $3::uuid)`

// CountOpenLoans implements commit.Store.
func (s *CommitStore) CountOpenLoans(ctx context.Context, o commit.OpenLoans) (int, error) {
	statement, err := query(ctx, countOpenLoansSQL)
	if err != nil {
		return 0, err
	}
	var n int
	var held bool
	args := []any{o.UserID, nullable(o.MaterialTypeID), nullable(o.LoanTypeID), nullable(o.LockID)}
	err = s.db.read(ctx, func() error { return s.db.lending.QueryRow(ctx, statement, args...).Scan(&n, &held) })
	if err == nil && !held {
		return 0, commit.ErrLockLost(o.LockID)
	}
	return n, toFault("counting open loans", err)
}
