package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// A renewal keeps the item from changing without changing it. The recall is looked
// for last: one that was placed while the renewal waited is seen, a later one
// finds the renewed loan.
const (
	shareItemSQL = `SELECT jsonb::text FROM {schema}.item WHERE id = $1::uuid FOR SHARE`
	lockLoanSQL  = `SELECT jsonb::text FROM {schema}.loan WHERE id = $1::uuid FOR UPDATE`
	recalledSQL  = `
SELECT clock_timestamp(),
       EXISTS (SELECT FROM {schema}.request WHERE item_id = $1::uuid AND is_open AND jsonb->>'requestType' = 'Recall')`
)

// Renew gives an open loan its new due date, provided that it is as the caller
// judged it. Faults: those of commit.Renewal's Decide.
func (s *CommitStore) Renew(ctx context.Context, r commit.Renewal) (schemas.RenewalResult, error) {
	var loan *string
	err := s.db.inTx(ctx, "renewing a loan", func(tx pgx.Tx) error {
		seen, err := lookRenewal(ctx, tx, r)
		if err != nil {
			return err
		}
		renewing, err := r.Decide(ctx, seen)
		if err != nil {
			return err
		}
		var b batch
		b.write(updateLoanSQL, renewing.Loan, &loan)
		b.event(renewing.Event)
		if err := b.send(ctx, tx); err != nil {
			return fmt.Errorf("writing a renewal: %w", err)
		}
		return nil
	})
	if err != nil {
		return schemas.RenewalResult{}, err
	}
	return schemas.RenewalResult{Loan: raw(loan)}, nil
}

func lookRenewal(ctx context.Context, tx pgx.Tx, r commit.Renewal) (commit.SeenRenewal, error) {
	var seen commit.SeenRenewal
	var item, loan *string
	var b batch
	b.one(shareItemSQL, []any{r.ItemID}, &item)
	b.one(lockLoanSQL, []any{r.LoanID}, &loan)
	b.one(recalledSQL, []any{r.ItemID}, &seen.Now, &seen.Recalled)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenRenewal{}, fmt.Errorf("reading what a renewal changes: %w", err)
	}
	var err error
	if seen.Item, err = decodeStored(item); err != nil {
		return commit.SeenRenewal{}, err
	}
	seen.Loan, err = decodeStored(loan)
	return seen, err
}
