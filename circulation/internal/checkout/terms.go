package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The terms of a loan: its policy, the item limit and the due date.

// applyPolicy finds the loan policy and makes the checks that depend on it. lockID
// is that of checkLimit.
func (s *Service) applyPolicy(ctx context.Context, p *plan, lockID string) ([]fault.Detail, error) {
	conditions, wrong, err := s.choosePolicy(ctx, p)
	if len(wrong) > 0 || err != nil {
		return wrong, err
	}
	p.limit, p.limited = p.policy.ItemLimitFor(conditions)
	lifted, wrong := p.lift(ctx, itemLimitBlock)
	if lifted {
		p.limited = false // under the lock too
	}
	reached, err := s.checkLimit(ctx, p, lockID)
	if err != nil {
		return nil, err
	}
	if reached != nil {
		wrong = append(wrong, *reached)
	}
	return append(wrong, p.checkLoanable(ctx)...), nil
}

// choosePolicy finds the policy that the request names, else the one of the
// rules, and which conditions of the rule hold: none for a policy by request.
func (s *Service) choosePolicy(ctx context.Context, p *plan) (policy.Conditions, []fault.Detail, error) {
	if p.req.ForceLoanPolicyID != "" {
		wrong, err := s.forcePolicy(ctx, p)
		return policy.Conditions{}, wrong, err
	}
	criteria, err := p.criteria()
	if err != nil {
		return policy.Conditions{}, nil, err
	}
	p.match = p.rules.Match(policy.KindLoan, criteria)
	p.overdueFine = p.rules.Match(policy.KindOverdueFine, criteria).PolicyID
	p.lostItem = p.rules.Match(policy.KindLostItem, criteria).PolicyID
	p.policy, err = s.Library.LoanPolicy(ctx, p.match.PolicyID)
	if fault.Is(err, fault.NotFound) {
		err = noLoanPolicy(p.match.PolicyID)
	}
	return p.match.Conditions, nil, err
}

// noLoanPolicy is the fault of rules that name a loan policy without a record.
func noLoanPolicy(id string) error {
	return fault.New(fault.Internal, "Loan policy %s could not be found, please check circulation rules", id)
}

// forcePolicy finds the policy that the request names. It needs the permission to
// lift the item limit, since a policy without a rule has no item limit.
func (s *Service) forcePolicy(ctx context.Context, p *plan) ([]fault.Detail, error) {
	id := p.req.ForceLoanPolicyID
	named := fault.Param("forceLoanPolicyId", id)
	if !schemas.IsUUID(id) {
		return []fault.Detail{detail("", "forceLoanPolicyId must be a UUID", named)}, nil
	}
	if wrong := itemLimitBlock.forbid(ctx, named); wrong != nil {
		return wrong, nil
	}
	var exists bool
	var err error
	if p.policy, exists, err = fault.Found(s.Library.LoanPolicy(ctx, id)); err != nil || exists {
		return nil, err
	}
	return []fault.Detail{uncoded(CausePolicyNotFound, fmt.Sprintf("Loan policy %s could not be found", id), named)}, nil
}

func (s *Service) compiledRules(ctx context.Context) (*policy.Rules, error) {
	rules, err := s.Library.Rules(ctx)
	var syntax *policy.SyntaxError
	if errors.As(err, &syntax) {
		return nil, fault.Wrap(err, fault.Internal, "%s", syntax.Message)
	}
	return rules, err
}

// criteria is what the rules are asked about. What they cannot be asked about is
// a fault of the library's records, with FOLIO's words.
func (p *plan) criteria() (policy.Criteria, error) {
	missing := ""
	switch {
	case p.user.PatronGroup == "":
		missing = "a user with null value as patronGroupId"
	case p.item.EffectiveLocationID == "":
		missing = "an item with null value as locationId"
	case p.item.LoanTypeID() == "":
		missing = "an item which loan type can not be determined"
	case p.item.MaterialTypeID == "":
		missing = "an item with null value as materialTypeId"
	}
	if missing != "" {
		return policy.Criteria{}, fault.New(fault.Internal, "Unable to apply circulation rules to %s", missing)
	}
	return policy.Criteria{
		MaterialType: p.item.MaterialTypeID,
		LoanType:     p.item.LoanTypeID(),
		PatronGroup:  p.user.PatronGroup,
		Location:     p.item.EffectiveLocationID,
		Library:      p.location.LibraryID,
		Campus:       p.location.CampusID,
		Institution:  p.location.InstitutionID,
	}, nil
}

// checkLimit counts the patron's loans that the limit is about. It is the check of
// the first pass and, with the id of the lock that is held, the one that decides.
// Fault: LockLost when that is no longer the patron's lock.
func (s *Service) checkLimit(ctx context.Context, p *plan, lockID string) (*fault.Detail, error) {
	if !p.limited {
		return nil, nil //nolint:nilnil // nothing wrong, nothing failed
	}
	counted := LoanCount{UserID: p.user.ID, LockID: lockID}
	if p.limit.ByMaterialType {
		counted.MaterialTypeID = p.item.MaterialTypeID
	}
	if p.limit.ByLoanType {
		counted.LoanTypeID = p.item.LoanTypeID()
	}
	n, err := s.Library.OpenLoans(ctx, counted)
	if err != nil {
		return nil, err
	}
	p.standing = &LimitStanding{Max: p.limit.Max, Open: n, Reached: p.limit.Reached(n), Message: p.limit.Message}
	if !p.standing.Reached {
		return nil, nil //nolint:nilnil // nothing wrong, nothing failed
	}
	d := detail(p.limit.Code, p.limit.Message, fault.Param("itemBarcode", p.req.ItemBarcode),
		fault.Param("itemLimit", strconv.Itoa(p.limit.Max)))
	d.OverridableBlock = itemLimitBlock.overridable(ctx)
	return &d, nil
}

// dueDate is the one that staff chose for an item that is not loanable, else the
// policy's. The details say why the policy has none.
func (s *Service) dueDate(ctx context.Context, p *plan) (Instant, []fault.Detail, error) {
	if chosen := p.req.OverrideBlocks.ItemNotLoanableBlock; chosen != nil {
		return chosen.DueDate, nil, nil
	}
	terms := policy.Terms{LoanDate: p.loanDate.UTC(), PatronExpires: p.user.ExpirationDate.Time, HoldWaits: p.holdWaits()}
	var err error
	if terms.Schedule, err = s.schedule(ctx, p.policy.ScheduleID, p.policy.ID); err != nil {
		return Instant{}, nil, err
	}
	due, err := p.policy.DueDate(terms)
	var wrong *policy.DueDateError
	if errors.As(err, &wrong) {
		return Instant{}, []fault.Detail{detail("", wrong.Message, p.aboutPolicy()...)}, nil
	}
	return Instant{due}, nil, err
}

// schedule returns the fixed due date schedule that a loan policy names; one
// without any has the zero schedule.
func (s *Service) schedule(ctx context.Context, id, policyID string) (policy.FixedSchedule, error) {
	if id == "" {
		return policy.FixedSchedule{}, nil
	}
	schedule, err := s.Library.FixedSchedule(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.Internal, "Fixed due date schedule %s of the loan policy %s could not be found", id, policyID)
	}
	return schedule, err
}

// aboutPolicy are the parameters of errors that the loan policy is the reason of.
func (p *plan) aboutPolicy() []fault.Parameter {
	return []fault.Parameter{fault.Param("loanPolicyId", p.policy.ID), fault.Param("loanPolicyName", p.policy.Name)}
}

// makeLoan computes the due date and the loan as it will be stored. Its id is
// chosen once, so that a repeated commit is recognised. The details are why there
// is no due date.
func (s *Service) makeLoan(ctx context.Context, p *plan) ([]fault.Detail, error) {
	due, wrong, err := s.dueDate(ctx, p)
	if err != nil || len(wrong) > 0 {
		return wrong, err
	}
	p.loan = Loan{
		ID:                                cmp.Or(p.loan.ID, p.req.LoanID, uuid.NewString()),
		UserID:                            p.user.ID,
		ProxyUserID:                       p.proxy.ID,
		ItemID:                            p.item.ID,
		ItemEffectiveLocationIDAtCheckOut: p.item.EffectiveLocationID,
		Status:                            Status{Name: "Open"},
		LoanDate:                          p.loanDate,
		DueDate:                           due,
		Action:                            "checkedout",
		ItemStatus:                        statusCheckedOut,
		LoanPolicyID:                      p.policy.ID,
		OverdueFinePolicyID:               onlyUUID(p.overdueFine),
		LostItemPolicyID:                  onlyUUID(p.lostItem),
		CheckoutServicePointID:            p.req.ServicePointID,
		PatronGroupIDAtCheckout:           p.user.PatronGroup,
	}
	if p.overridden {
		p.loan.Action, p.loan.ActionComment = "checkedOutThroughOverride", p.req.OverrideBlocks.Comment
	}
	return nil, nil
}

// onlyUUID leaves out what no record can have as its id: rules may name the
// policies that nothing checks with anything.
func onlyUUID(id string) string {
	if !schemas.IsUUID(id) {
		return ""
	}
	return id
}
