package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

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
	return s.changeLoan(ctx, commit.LoanChanging, c.ID, locks, c.Decide)
}

// ReplaceLoan implements commit.Store.
func (s *CommitStore) ReplaceLoan(ctx context.Context, r commit.LoanReplacement) error {
	return s.changeLoan(ctx, commit.LoanReplacing, r.ID, rowLocks{itemOfLoan: true, loanID: r.LoanID}, r.Decide)
}

// changeLoan changes a loan, and its item with it, under the locks. It looks for an earlier change with
// the same id after it locked the loan: the earlier one held that lock until its COMMIT.
func (s *CommitStore) changeLoan(
	ctx context.Context, kind commit.Kind, id uuid.UUID, locks rowLocks, decide func(context.Context, commit.Seen) (commit.Change, error),
) error {
	_, err := run(ctx, s, operation[struct{}]{
		kind: kind, op: "changing a loan", reads: "what a change of a loan changes", writes: "a change of a loan",
		decide: func(ctx context.Context, seen commit.Seen) (commit.Change, error) {
			if seen.Item != nil && seen.Loan != nil && !strings.EqualFold(seen.Item.ID(), seen.Loan.Text("itemId")) {
				return commit.Change{}, fmt.Errorf("the loan got another item meanwhile: %w", database.ErrRunAgain)
			}
			return decide(ctx, seen)
		},
		locks: locks,
		read: func(b *batch, seen *commit.Seen) {
			b.query(pastLoanChangeSQL, []any{id}, &seen.Before)
			b.query(loanRecalledSQL, []any{locks.loanID}, &seen.Now, &seen.Recalled)
		},
		write: func(b *batch, change commit.Change, _ *struct{}) {
			b.query(addLoanChangeSQL, []any{id, change.Loan.ID()})
			b.writeChange(change, nil, nil)
		},
	})
	return err
}

// recalledSQL is the last statement that reads. It sees a recall that was placed while the
// renewal waited for the item; a later recall finds the renewed loan.
const recalledSQL = `
SELECT clock_timestamp(),
       EXISTS (SELECT FROM {schema}.request r WHERE r.item_id = $1::uuid AND ` + isWaiting + ` AND r.jsonb->>'requestType' = 'Recall')`

// Renew implements commit.Store. It shares the item's lock unless the renewal changes the item.
func (s *CommitStore) Renew(ctx context.Context, r commit.Renewal) (schemas.RenewalResult, error) {
	return run(ctx, s, operation[schemas.RenewalResult]{
		kind: commit.LoanRenewal, op: "renewing a loan", reads: "what a renewal changes", writes: "a renewal",
		decide: r.Decide,
		locks:  rowLocks{itemID: r.ItemID, shareItem: !r.ChangesItem(), loanID: r.LoanID},
		read: func(b *batch, seen *commit.Seen) {
			b.query(recalledSQL, []any{r.ItemID}, &seen.Now, &seen.Recalled)
		},
		write: func(b *batch, change commit.Change, answer *schemas.RenewalResult) {
			b.writeChange(change, &answer.Loan, nil)
		},
	})
}

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
		decide: c.Decide,
		locks:  rowLocks{itemID: c.ItemID, openLoan: true, queue: true, titleLevel: c.TitleLevel},
		read: func(b *batch, seen *commit.Seen) {
			b.query(pastCheckInSQL, []any{c.ID}, &seen.Before, &seen.Past.Item, &seen.Past.Loan)
			b.query(clockSQL, nil, &seen.Now)
		},
		answer: func(_ *batch, change commit.Change, answer *schemas.CheckInResult) { *answer = change.Past },
		write: func(b *batch, change commit.Change, answer *schemas.CheckInResult) {
			b.writeChange(change, &answer.Loan, &answer.Item)
			if c.ID != uuid.Nil {
				b.query(addCheckInSQL, []any{c.ID, c.ItemID, change.Loan.ID()})
			}
		},
	})
}
