package requests

import (
	"context"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// recallLoan returns the due date that the recall gives the item's open loan. A loan that was
// recalled before keeps its date.
func (s *Service) recallLoan(ctx context.Context, f facts) (*schemas.LoanRecall, error) {
	due := f.loan.DueDate.Time
	if !f.loan.Recalled || due.IsZero() {
		var err error
		if due, err = s.computeDueDate(ctx, f); err != nil {
			return nil, err
		}
	}
	r := &schemas.LoanRecall{LoanID: f.loan.ID, DueDate: library.Instant{Time: due}.Text()}
	if judged := f.loan.DueDate; !judged.IsZero() {
		r.JudgedDueDate = judged.Format(time.RFC3339Nano)
		if due.Equal(judged.Time) {
			r.DueDate = r.JudgedDueDate // with its fractions of milliseconds
		}
	}
	return r, nil
}

// computeDueDate returns the due date by the policy that the rules choose now for the borrower, as
// FOLIO does. Fault: Invalid if the policy gives none.
func (s *Service) computeDueDate(ctx context.Context, f facts) (time.Time, error) {
	lent := f.records
	var err error
	if lent.User, _, err = fault.Found(s.Library.User(ctx, f.loan.UserID)); err != nil {
		return time.Time{}, err
	}
	criteria, err := lent.Criteria()
	if err != nil {
		return time.Time{}, err
	}
	id := lent.Rules.Match(policy.KindLoan, criteria).PolicyID
	return library.ComputeRecall(ctx, s.Library, id, policy.RecallTerms{
		Now: s.Now().UTC(), LoanDate: f.loan.LoanDate.UTC(), DueDate: f.loan.DueDate.UTC(),
	})
}
