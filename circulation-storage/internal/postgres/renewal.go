package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
)

// recalledSQL is the last statement that reads. It sees a recall that was placed while the
// renewal waited for the item; a later recall finds the renewed loan.
const recalledSQL = `
SELECT clock_timestamp(),
       EXISTS (SELECT FROM {schema}.request WHERE item_id = $1::uuid AND is_open AND jsonb->>'requestType' = 'Recall')`

// Renew gives an open loan its new due date, provided that it is as the caller
// judged it. Faults: those of commit.Renewal's Decide.
func (s *CommitStore) Renew(ctx context.Context, r commit.Renewal) (schemas.RenewalResult, error) {
	var result schemas.RenewalResult
	err := s.db.inTx(ctx, "renewing a loan", func(tx pgx.Tx) error {
		seen, err := readRenewal(ctx, tx, r)
		if err != nil {
			return err
		}
		renewing, err := r.Decide(ctx, seen)
		if err != nil {
			return err
		}
		var b batch
		b.storeRecord(updateLoanSQL, renewing.Loan, &result.Loan)
		if renewing.Item != nil {
			b.storeRecord(updateItemSQL, renewing.Item)
		}
		b.addEvent(renewing.Event)
		if err := b.send(ctx, tx); err != nil {
			return fmt.Errorf("writing a renewal: %w", err)
		}
		return nil
	})
	if err != nil {
		return schemas.RenewalResult{}, err
	}
	return result, nil
}

// readRenewal shares the item's lock unless the renewal changes the item.
func readRenewal(ctx context.Context, tx pgx.Tx, r commit.Renewal) (commit.SeenRenewal, error) {
	var seen commit.SeenRenewal
	var b batch
	rows := b.lockRows(rowLocks{itemID: r.ItemID, shareItem: !r.ChangesItem(), loanID: r.LoanID})
	b.query(recalledSQL, []any{r.ItemID}, &seen.Now, &seen.Recalled)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenRenewal{}, fmt.Errorf("reading what a renewal changes: %w", err)
	}
	var err error
	seen.Item, seen.Loan, _, err = rows.decode()
	return seen, err
}
