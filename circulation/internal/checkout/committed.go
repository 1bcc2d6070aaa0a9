package checkout

import (
	"context"
	"encoding/json"
	"fmt"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Committed returns the check-out whose loan has the request's LoanID, as CheckOut
// would have answered it; false when there is no such loan. What belongs to the
// loan is as it is now, and absent where the barcodes of the request no longer
// name it. Fault: OutcomeUnknown when it stays open whether the loan exists.
func (s *Service) Committed(ctx context.Context, req Request) (Lent, bool, error) {
	rctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	loan, exists, err := fault.Found(s.Committer.CommittedLoan(rctx, req.LoanID))
	switch {
	case err != nil:
		return Lent{}, false, outcomeUnknown(req.LoanID, err)
	case !exists:
		return Lent{}, false, nil
	}
	p := &plan{req: req}
	if err := s.gather(ctx, req, &p.facts); err != nil {
		return Lent{}, false, fmt.Errorf("reading what belongs to the loan %s: %w", req.LoanID, err)
	}
	var stored Loan
	if err := json.Unmarshal(loan, &stored); err != nil {
		return Lent{}, false, fmt.Errorf("reading the loan %s: %w", req.LoanID, err)
	}
	if p.policy, _, err = fault.Found(s.Library.LoanPolicy(ctx, stored.LoanPolicyID)); err != nil {
		return Lent{}, false, fmt.Errorf("reading the loan policy of the loan %s: %w", req.LoanID, err)
	}
	return (&try{Service: s, plan: p}).lent(ctx, schemas.CheckOutResult{Loan: loan}), true, nil
}
