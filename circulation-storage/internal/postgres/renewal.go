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
       EXISTS (SELECT FROM {schema}.request r WHERE r.item_id = $1::uuid AND ` + isWaiting + ` AND r.jsonb->>'requestType' = 'Recall')`

// Renew gives an open loan its new due date, provided that it is as the caller
// judged it. Faults: those of commit.Renewal's Decide.
func (s *CommitStore) Renew(ctx context.Context, r commit.Renewal) (schemas.RenewalResult, error) {
	return runDecision(ctx, s.db, "renewing a loan", r, readRenewal, writeRenewal)
}

func writeRenewal(ctx context.Context, tx pgx.Tx, _ commit.Renewal, r commit.Renewing) (schemas.RenewalResult, error) {
	var result schemas.RenewalResult
	var b batch
	b.storeRecord(updateLoanSQL, r.Loan, &result.Loan)
	if r.Item != nil {
		b.storeRecord(updateItemSQL, r.Item)
	}
	b.addEvent(r.Event)
	if err := b.send(ctx, tx); err != nil {
		return schemas.RenewalResult{}, fmt.Errorf("writing a renewal: %w", err)
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
