package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// applyPolicy finds the loan policy and makes the checks that depend on it.
func (s *Service) applyPolicy(ctx context.Context, p *plan) (fault.List, error) {
	found, err := s.choosePolicy(ctx, p)
	if len(found) > 0 || err != nil {
		return found, err
	}
	// A policy by request has no rule, so its match names no conditions.
	p.limit, p.limited = p.policy.ItemLimitFor(p.match.Conditions)
	lifted, found := p.liftBlock(ctx, itemLimitBlock)
	if lifted {
		p.limited = false // under the lock too
	}
	var overLimit fault.List
	p.standing, overLimit = p.checkLimit(ctx)
	return slices.Concat(found, overLimit, p.checkLoanable(ctx)), nil
}

// choosePolicy finds the policy that the request names, else that of the rules.
func (s *Service) choosePolicy(ctx context.Context, p *plan) (found fault.List, err error) {
	if id := p.req.ForceLoanPolicyID; id != "" {
		named := fault.Param("forceLoanPolicyId", id)
		if found := library.CheckUUID("forceLoanPolicyId", id); found != nil {
			return found, nil
		}
		// A policy without a rule has no item limit.
		if found := itemLimitBlock.check.CheckPermission(ctx, named); found != nil {
			return found, nil
		}
		p.policy, err = s.Library.LoanPolicy(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return fault.List{fault.Refusal(library.CodePolicyNotFound, fmt.Sprintf("Loan policy %s could not be found", id), named)}, nil
		}
		return nil, err
	}
	criteria, err := p.facts.Criteria()
	if err != nil {
		return nil, err
	}
	p.match = p.facts.Rules.Match(policy.KindLoan, criteria)
	p.overdueFine = p.facts.Rules.Match(policy.KindOverdueFine, criteria).PolicyID
	p.lostItem = p.facts.Rules.Match(policy.KindLostItem, criteria).PolicyID
	p.policy, err = s.Library.LoanPolicy(ctx, p.match.PolicyID)
	if fault.Is(err, fault.NotFound) {
		err = library.NewPolicyNotFound(p.match.PolicyID)
	}
	return nil, err
}

// checkLimit compares the policy's limit with the open loans that were read with the patron, and
// returns the comparison; nil if no limit applies. It is a first check, which saves a patron at the
// limit the wait for the lock. The limits of the patron's group have theirs in storage, which lists
// those that are reached as automated blocks.
func (p *plan) checkLimit(ctx context.Context) (*LimitStanding, fault.List) {
	counted := p.findLimit()
	if counted == nil {
		return nil, nil
	}
	n := counted.Count(p.facts.OpenLoans)
	standing := &LimitStanding{Max: p.limit.Max, Open: n, Reached: p.limit.IsReached(n), Message: p.limit.Message}
	if !standing.Reached {
		return standing, nil
	}
	return standing, fault.List{p.refuseLimit(ctx)}
}

// findLimit returns the policy's limit with the types of the item that it counts; nil if none
// applies.
func (p *plan) findLimit() *schemas.LoanLimit {
	if !p.limited {
		return nil
	}
	counted := &schemas.LoanLimit{Max: p.limit.Max}
	if p.limit.ByMaterialType {
		counted.MaterialTypeID = p.facts.Item.MaterialTypeID
	}
	if p.limit.ByLoanType {
		counted.LoanTypeID = p.facts.Item.LoanTypeID()
	}
	return counted
}

// refuseLimit returns FOLIO's refusal of a check-out that would exceed the policy's limit.
func (p *plan) refuseLimit(ctx context.Context) fault.Detail {
	d := fault.Refusal(p.limit.Code, p.limit.Message, fault.Param("itemBarcode", p.req.ItemBarcode),
		fault.Param("itemLimit", strconv.Itoa(p.limit.Max)))
	d.OverridableBlock = itemLimitBlock.check.Describe(ctx)
	return d
}

// checkLoanable refuses an item that its policy does not lend, unless staff lift that.
func (p *plan) checkLoanable(ctx context.Context) fault.List {
	lifted, found := p.liftBlock(ctx, notLoanableBlock)
	switch {
	case len(found) > 0 || !lifted && p.policy.Loanable:
		return found
	case !lifted:
		d := fault.Refusal("ITEM_NOT_LOANABLE", "Item is not loanable",
			append(library.NamePolicy(p.policy), fault.Param("itemBarcode", p.req.ItemBarcode))...)
		d.OverridableBlock = notLoanableBlock.check.Describe(ctx)
		return fault.List{d}
	}
	due := p.req.OverrideBlocks.ItemNotLoanableBlock.DueDate
	switch {
	case due.IsZero():
		return fault.List{fault.Refusal("", "Override should be performed with due date specified", fault.Parameter{Key: "dueDate"})}
	case !due.After(p.loanDate.Time):
		return fault.List{fault.Refusal("", "Due date should be later than loan date", fault.Param("dueDate", due.Text()))}
	}
	return nil
}

// makeLoan computes the due date and the loan as it will be stored. It keeps the id of a loan that
// was planned before. The details say why there is no due date.
func (s *Service) makeLoan(ctx context.Context, p *plan) (fault.List, error) {
	due, recalled, err := s.chooseDueDate(ctx, p)
	if refused, ok := errors.AsType[*policy.DueDateError](err); ok {
		return fault.List{fault.Refusal(library.CodeNoDueDate, refused.Message, library.NamePolicy(p.policy)...)}, nil
	}
	if err != nil {
		return nil, err
	}
	p.loan = library.Loan{
		ID:                                p.loan.ID,
		UserID:                            p.facts.User.ID,
		ProxyUserID:                       p.facts.Proxy.ID,
		ItemID:                            p.facts.Item.ID,
		ItemEffectiveLocationIDAtCheckOut: p.facts.Item.EffectiveLocationID,
		Status:                            library.Status{Name: "Open"},
		LoanDate:                          p.loanDate,
		DueDate:                           library.Instant{Time: due},
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

// chooseDueDate returns the date that staff chose for an item that is not loanable, else the
// policy's. If another patron recalls the item, it is the date which the recall would give the loan.
// A policy that has none is a *policy.DueDateError.
func (s *Service) chooseDueDate(ctx context.Context, p *plan) (due time.Time, recalled bool, err error) {
	_, recalled = p.facts.FindRecall(p.fills)
	terms := policy.Terms{LoanDate: p.loanDate.UTC(), PatronExpires: p.facts.User.ExpirationDate.Time, HoldWaits: p.facts.HasHold(p.fills)}
	if chosen := p.req.OverrideBlocks.ItemNotLoanableBlock; chosen != nil {
		due = chosen.DueDate.Time
	} else {
		terms.Schedule, err = library.ReadSchedule(ctx, s.Library, p.policy.ScheduleID, p.policy.ID)
		if err == nil {
			due, err = p.policy.DueDate(terms)
		}
	}
	if err == nil && recalled {
		due, err = p.policy.Recall(policy.RecallTerms{Now: s.Now().UTC(), LoanDate: terms.LoanDate, DueDate: due.UTC()})
	}
	return due, recalled, err
}
