package postgres

import (
	"context"

	"checkoutlock/circulation-storage/internal/checkout"
)

// FOLIO's item limit asks neither for the loan's policy nor for the patron's group
// or location; a loan type counts when it is the one in force for the item.
const countOpenLoansSQL = `
SELECT count(*)
  FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id
 WHERE l.is_open AND l.user_id = $1::uuid
   AND i.jsonb->'status'->>'name' <> 'Claimed returned'
   AND ($2::uuid IS NULL OR i.material_type_id = $2::uuid)
   AND ($3::uuid IS NULL OR coalesce(i.temporary_loan_type_id, i.permanent_loan_type_id) = $3::uuid)`

// CountOpenLoans implements checkout.Store.
func (s *CommitStore) CountOpenLoans(ctx context.Context, o checkout.OpenLoans) (int, error) {
	statement, err := query(ctx, countOpenLoansSQL)
	if err != nil {
		return 0, err
	}
	var n int
	err = s.db.pool.QueryRow(ctx, statement, o.UserID, nullable(o.MaterialTypeID), nullable(o.LoanTypeID)).Scan(&n)
	return n, toFault("counting open loans", err)
}
