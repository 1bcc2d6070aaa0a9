package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/database"
	"checkoutlock/schemas"
)

const (
	pastLoanChangeSQL = `SELECT loan_id FROM {schema}.loan_change WHERE id = $1::uuid`
	addLoanChangeSQL  = `INSERT INTO {schema}.loan_change (id, loan_id) VALUES ($1::uuid, $2::uuid)`

	// loanRecalledSQL is recalledSQL for the item of a loan.
	loanRecalledSQL = `
SELECT clock_timestamp(),
       EXISTS (SELECT FROM {schema}.request r JOIN {schema}.loan l USING (item_id)
                WHERE l.id = $1::uuid AND ` + isWaiting + ` AND r.jsonb->>'requestType' = 'Recall')`
)

// ChangeLoan implements commit.Store.
func (s *CommitStore) ChangeLoan(ctx context.Context, c commit.LoanChange) error {
	locks := rowLocks{itemOfLoan: c.ReadsItem(), shareItem: !c.ChangesItem(), loanID: c.LoanID}
	return s.writeLoan(ctx, c, c.ID, locks)
}

// ReplaceLoan implements commit.Store.
func (s *CommitStore) ReplaceLoan(ctx context.Context, r commit.LoanReplacement) error {
	return s.writeLoan(ctx, r, r.ID, rowLocks{itemOfLoan: true, loanID: r.LoanID})
}

// writeLoan changes a loan, and its item with it, under the locks.
func (s *CommitStore) writeLoan(ctx context.Context, change decision[commit.SeenChange, commit.Changing], id uuid.UUID, locks rowLocks) error {
	return s.db.inTx(ctx, "changing a loan", func(tx pgx.Tx) error {
		seen, err := readLoanChange(ctx, tx, id, locks)
		if err != nil {
			return err
		}
		changing, err := change.Decide(ctx, seen)
		if err != nil || changing.Repeated {
			return err
		}
		return writeLoanChange(ctx, tx, id, changing)
	})
}

func writeLoanChange(ctx context.Context, tx pgx.Tx, id uuid.UUID, changing commit.Changing) error {
	var b batch
	b.query(addLoanChangeSQL, []any{id, changing.Loan.ID()})
	b.storeRecord(updateLoanSQL, changing.Loan)
	if changing.Item != nil {
		b.storeRecord(updateItemSQL, changing.Item)
	}
	b.addEvent(changing.Event)
	if err := b.send(ctx, tx); err != nil {
		return explainWriteError("a change of a loan", err, func(constraint string) error { return commit.ChangeViolation(id, constraint) })
	}
	return nil
}

// readLoanChange looks for an earlier change with the same id after it locked the loan. The earlier
// one held that lock until its COMMIT.
func readLoanChange(ctx context.Context, tx pgx.Tx, id uuid.UUID, locks rowLocks) (commit.SeenChange, error) {
	var seen commit.SeenChange
	var b batch
	rows := b.lockRows(locks)
	b.query(pastLoanChangeSQL, []any{id}, &seen.Before)
	b.query(loanRecalledSQL, []any{locks.loanID}, &seen.Now, &seen.Recalled)
	if err := b.send(ctx, tx); err != nil {
		return commit.SeenChange{}, fmt.Errorf("reading what a change of a loan changes: %w", err)
	}
	var err error
	seen.Item, seen.Loan, _, err = rows.decode()
	if err == nil && seen.Item != nil && seen.Loan != nil && !strings.EqualFold(seen.Item.ID(), seen.Loan.Text("itemId")) {
		err = fmt.Errorf("the loan got another item meanwhile: %w", database.ErrRunAgain)
	}
	return seen, err
}

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
