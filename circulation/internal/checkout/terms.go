package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// applyPolicy finds the loan policy and makes the checks that depend on it.
func (s *Service) applyPolicy(ctx context.Context, p *plan) (fault.List, error) {
	conditions, found, err := s.choosePolicy(ctx, p)
	if len(found) > 0 || err != nil {
		return found, err
	}
	p.limit, p.limited = p.policy.ItemLimitFor(conditions)
	lifted, found := p.liftBlock(ctx, itemLimitBlock)
	if lifted {
		p.limited = false // under the lock too
	}
	return slices.Concat(found, p.checkLimit(ctx), p.checkLoanable(ctx)), nil
}

// choosePolicy finds the policy that the request names, else that of the rules. It returns which
// conditions the rule names: none for a policy by request.
func (s *Service) choosePolicy(ctx context.Context, p *plan) (policy.Conditions, fault.List, error) {
	if p.req.ForceLoanPolicyID != "" {
		found, err := s.findForcedPolicy(ctx, p)
		return policy.Conditions{}, found, err
	}
	criteria, err := p.facts.Criteria()
	if err != nil {
		return policy.Conditions{}, nil, err
	}
	p.match = p.facts.Rules.Match(policy.KindLoan, criteria)
	p.overdueFine = p.facts.Rules.Match(policy.KindOverdueFine, criteria).PolicyID
	p.lostItem = p.facts.Rules.Match(policy.KindLostItem, criteria).PolicyID
	p.policy, err = s.Library.LoanPolicy(ctx, p.match.PolicyID)
	if fault.Is(err, fault.NotFound) {
		err = library.NewPolicyNotFound(p.match.PolicyID)
	}
	return p.match.Conditions, nil, err
}

// findForcedPolicy finds the policy that the request names. It needs the permission to lift the
// item limit, because a policy without a rule has no item limit.
func (s *Service) findForcedPolicy(ctx context.Context, p *plan) (fault.List, error) {
	id := p.req.ForceLoanPolicyID
	named := fault.Param("forceLoanPolicyId", id)
	if found := library.CheckUUID("forceLoanPolicyId", id); found != nil {
		return found, nil
	}
	if found := itemLimitBlock.check.CheckPermission(ctx, named); found != nil {
		return found, nil
	}
	var exists bool
	var err error
	if p.policy, exists, err = fault.Found(s.Library.LoanPolicy(ctx, id)); err != nil || exists {
		return nil, err
	}
	return fault.List{fault.Refusal(library.CodePolicyNotFound, fmt.Sprintf("Loan policy %s could not be found", id), named)}, nil
}

// chooseDueDate returns the due date of a new loan. If another patron recalls the item, that is the
// date which the recall would give the loan.
func (s *Service) chooseDueDate(ctx context.Context, p *plan, recalled bool) (library.Instant, fault.List, error) {
	due, found, err := s.chooseOwnDueDate(ctx, p)
	if !recalled || err != nil || len(found) > 0 {
		return due, found, err
	}
	earlier, err := p.policy.Recall(policy.RecallTerms{Now: s.Now().UTC(), LoanDate: p.loanDate.UTC(), DueDate: due.UTC()})
	return p.explainDueDate(earlier, err)
}

// explainDueDate returns the date, or the details that say why the policy has none.
func (p *plan) explainDueDate(due time.Time, err error) (library.Instant, fault.List, error) {
	if refused, ok := errors.AsType[*policy.DueDateError](err); ok {
		return library.Instant{}, fault.List{fault.Refusal(library.CodeNoDueDate, refused.Message, library.NamePolicy(p.policy)...)}, nil
	}
	return library.Instant{Time: due}, nil, err
}

// chooseOwnDueDate returns the date that staff chose for an item that is not loanable, else the
// policy's. The details say why the policy has none.
func (s *Service) chooseOwnDueDate(ctx context.Context, p *plan) (library.Instant, fault.List, error) {
	if chosen := p.req.OverrideBlocks.ItemNotLoanableBlock; chosen != nil {
		return chosen.DueDate, nil, nil
	}
	terms := policy.Terms{
		LoanDate: p.loanDate.UTC(), PatronExpires: p.facts.User.ExpirationDate.Time, HoldWaits: p.facts.Queue.HasHold(p.facts.Copy, p.fills),
	}
	var err error
	if terms.Schedule, err = library.ReadSchedule(ctx, s.Library, p.policy.ScheduleID, p.policy.ID); err != nil {
		return library.Instant{}, nil, err
	}
	due, err := p.policy.DueDate(terms)
	return p.explainDueDate(due, err)
}

// makeLoan computes the due date and the loan as it will be stored. It chooses the loan's id once,
// so that a repeated commit is recognised. The details say why there is no due date.
func (s *Service) makeLoan(ctx context.Context, p *plan) (fault.List, error) {
	_, recalled := p.facts.Queue.FindRecall(p.facts.Copy, p.fills)
	due, found, err := s.chooseDueDate(ctx, p, recalled)
	if err != nil || len(found) > 0 {
		return found, err
	}
	p.loan = library.Loan{
		ID:                                cmp.Or(p.loan.ID, p.req.LoanID, uuid.NewString()),
		UserID:                            p.facts.User.ID,
		ProxyUserID:                       p.facts.Proxy.ID,
		ItemID:                            p.facts.Copy.Item.ID,
		ItemEffectiveLocationIDAtCheckOut: p.facts.Copy.Item.EffectiveLocationID,
		Status:                            library.Status{Name: "Open"},
		LoanDate:                          p.loanDate,
		DueDate:                           due,
		Action:                            "checkedout",
		ItemStatus:                        library.StatusCheckedOut,
		LoanPolicyID:                      p.policy.ID,
		OverdueFinePolicyID:               library.KeepUUID(p.overdueFine),
		LostItemPolicyID:                  library.KeepUUID(p.lostItem),
		CheckoutServicePointID:            p.req.ServicePointID,
		PatronGroupIDAtCheckout:           p.facts.User.PatronGroup,
		DueDateChangedByRecall:            recalled,
	}
	if p.overridden {
		p.loan.Action, p.loan.ActionComment = "checkedOutThroughOverride", p.req.OverrideBlocks.Comment
	}
	return nil, nil
}
