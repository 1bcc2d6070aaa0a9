package checkout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// choice is the loan policy of a check-out, and how it was chosen.
type choice struct {
	policy policy.LoanPolicy
	// The other policies that the rules name go with the loan. They and the match are zero if the rules
	// were not asked.
	overdueFine, lostItem string
	match                 policy.Match
}

// applyPolicy chooses the loan policy and makes the checks that depend on it.
func (s *Service) applyPolicy(ctx context.Context, p *plan) error {
	chosen, refused, err := s.choosePolicy(ctx, p)
	p.chosen = chosen
	if p.refuse(refused...); len(refused) > 0 || err != nil {
		return err
	}
	// A policy by request has no rule, so its match names no conditions.
	p.limit, p.limited = chosen.policy.ItemLimitFor(chosen.match.Conditions)
	if p.req.OverrideBlocks.ItemLimitBlock != nil {
		p.liftBlock(ctx, itemLimitBlock)
		p.limited = false // under the lock too
	}
	p.judgeLimit(ctx)
	p.judgeLoanable(ctx)
	return nil
}

// choosePolicy finds the policy that the request names, else that of the rules.
func (s *Service) choosePolicy(ctx context.Context, p *plan) (c choice, refused fault.List, err error) {
	if id := p.req.ForceLoanPolicyID; id != "" {
		named := fault.Param("forceLoanPolicyId", id)
		if refused := library.CheckUUID("forceLoanPolicyId", id); refused != nil {
			return c, refused, nil
		}
		// A policy without a rule has no item limit.
		if refused := itemLimitBlock.CheckPermission(ctx, named); refused != nil {
			return c, refused, nil
		}
		c.policy, err = s.Library.LoanPolicy(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return c, fault.List{fault.Refusal(library.CodePolicyNotFound, fmt.Sprintf("Loan policy %s could not be found", id), named)}, nil
		}
		return c, nil, err
	}
	criteria, err := p.facts.Criteria()
	if err != nil {
		return c, nil, err
	}
	rules := p.facts.Rules
	c.match = rules.Match(policy.KindLoan, criteria)
	c.overdueFine, c.lostItem = rules.Match(policy.KindOverdueFine, criteria).PolicyID, rules.Match(policy.KindLostItem, criteria).PolicyID
	c.policy, err = s.Library.LoanPolicy(ctx, c.match.PolicyID)
	if fault.Is(err, fault.NotFound) {
		err = library.NewPolicyNotFound(c.match.PolicyID)
	}
	return c, nil, err
}

// judgeLimit compares the policy's limit with the open loans that were read with the patron. It is a
// first check, which saves a patron at the limit the wait for the lock. The limits of the patron's
// group have theirs in storage, which lists those that are reached as automated blocks.
func (p *plan) judgeLimit(ctx context.Context) {
	counted := p.findLimit()
	if counted == nil {
		return
	}
	n := counted.Count(p.facts.OpenLoans)
	p.standing = &LimitStanding{Max: p.limit.Max, Open: n, Reached: p.limit.IsReached(n), Message: p.limit.Message}
	if p.standing.Reached {
		p.refuse(p.newLimitReached(ctx))
	}
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

// newLimitReached returns FOLIO's refusal of a check-out that would exceed the policy's limit.
func (p *plan) newLimitReached(ctx context.Context) fault.Detail {
	d := fault.Refusal(p.limit.Code, p.limit.Message, fault.Param("itemBarcode", p.req.ItemBarcode),
		fault.Param("itemLimit", strconv.Itoa(p.limit.Max)))
	d.OverridableBlock = itemLimitBlock.Describe(ctx)
	return d
}

// judgeLoanable refuses an item that its policy does not lend, unless staff lift that.
func (p *plan) judgeLoanable(ctx context.Context) {
	if p.req.OverrideBlocks.ItemNotLoanableBlock == nil {
		if !p.chosen.policy.Loanable {
			d := fault.Refusal("ITEM_NOT_LOANABLE", "Item is not loanable",
				append(library.NamePolicy(p.chosen.policy), fault.Param("itemBarcode", p.req.ItemBarcode))...)
			d.OverridableBlock = notLoanableBlock.Describe(ctx)
			p.refuse(d)
		}
		return
	}
	p.liftBlock(ctx, notLoanableBlock)
	due := p.req.OverrideBlocks.ItemNotLoanableBlock.DueDate
	switch {
	case notLoanableBlock.CheckPermission(ctx) != nil: // refused by liftBlock
	case due.IsZero():
		p.refuse(fault.Refusal(library.CodeMissing, "Override should be performed with due date specified", fault.Parameter{Key: "dueDate"}))
	case !due.After(p.loanDate.Time):
		p.refuse(fault.Refusal("", "Due date should be later than loan date", fault.Param("dueDate", due.Text())))
	}
}

// planLoan computes the due date and the loan as it will be stored. It keeps the id of a loan that was
// planned before. It refuses a policy that gives no due date.
func (s *Service) planLoan(ctx context.Context, p *plan) error {
	due, recalled, err := s.chooseDueDate(ctx, p)
	if refused, ok := errors.AsType[*policy.DueDateError](err); ok {
		p.refuse(fault.Refusal(library.CodeNoDueDate, refused.Message, library.NamePolicy(p.chosen.policy)...))
		return nil
	}
	if err != nil {
		return err
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
		LoanPolicyID:                      p.chosen.policy.ID,
		OverdueFinePolicyID:               library.KeepUUID(p.chosen.overdueFine),
		LostItemPolicyID:                  library.KeepUUID(p.chosen.lostItem),
		CheckoutServicePointID:            p.req.ServicePointID,
		PatronGroupIDAtCheckout:           p.facts.User.PatronGroup,
		DueDateChangedByRecall:            recalled,
		IsDCB:                             p.facts.User.Type == "dcb",
	}
	if p.overridden {
		p.loan.Action, p.loan.ActionComment = "checkedOutThroughOverride", p.req.OverrideBlocks.Comment
	}
	return nil
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
		terms.Schedule, err = library.ReadSchedule(ctx, s.Library, p.chosen.policy.ScheduleID, p.chosen.policy.ID)
		if err == nil {
			due, err = p.chosen.policy.DueDate(terms)
		}
	}
	if err == nil && recalled {
		due, err = p.chosen.policy.Recall(policy.RecallTerms{
			Now: s.Now().UTC(), LoanDate: terms.LoanDate, DueDate: due.UTC(), PatronExpires: terms.PatronExpires, Schedule: terms.Schedule,
		})
	}
	return due, recalled, err
}
