package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/call"
	"checkoutlock/schemas/fault"
)

// Statuses that the checks know by name (mod-inventory-storage, item.json).
const (
	statusCheckedOut = "Checked out"
	statusDeclared   = "Declared lost"
	statusClaimed    = "Claimed returned"
	statusIntellect  = "Intellectual item"
	statusAged       = "Aged to lost"
)

// plan is a check-out that passed its checks: what will be written, and what the
// recount under the lock needs.
type plan struct {
	facts
	req     Request
	policy  policy.LoanPolicy
	limit   policy.ItemLimit
	limited bool
	loan    Loan
}

// validate makes FOLIO's checks in FOLIO's order, outside any lock. What is
// wrong is collected, and a check whose subject was not found is skipped; all of
// it is one Invalid fault. Faults of stored configuration end it at once.
func (s *Service) validate(ctx context.Context, req Request) (*plan, error) {
	f, err := s.gather(ctx, req)
	if err != nil {
		return nil, err
	}
	p := &plan{facts: *f, req: req}
	wrong := req.check()
	wrong = append(wrong, p.checkUser(s.Now())...)
	wrong = append(wrong, p.checkItem()...)
	if p.userFound && p.itemFound {
		more, err := s.applyPolicy(ctx, p)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, more...)
	}
	if len(wrong) > 0 {
		return nil, fault.Validation(wrong...)
	}
	return p, s.makeLoan(p)
}

func (p *plan) checkUser(now time.Time) []fault.Detail {
	barcode := fault.Param("userBarcode", p.req.UserBarcode)
	switch {
	case !p.userFound:
		return []fault.Detail{detail("USER_BARCODE_NOT_FOUND", "Could not find user with matching barcode", barcode)}
	case p.user.Active == nil:
		return []fault.Detail{detail("", "Cannot determine if user is active or not", barcode)}
	case !*p.user.Active, !p.user.ExpirationDate.IsZero() && p.user.ExpirationDate.Before(now):
		return []fault.Detail{detail("", "Cannot check out to inactive user", barcode)}
	}
	return nil
}

func (p *plan) checkItem() []fault.Detail {
	barcode := fault.Param("itemBarcode", p.req.ItemBarcode)
	if !p.itemFound {
		return []fault.Detail{detail("", fmt.Sprintf("No item with barcode %s could be found", p.req.ItemBarcode), barcode)}
	}
	var wrong []fault.Detail
	switch p.item.Status.Name {
	case statusCheckedOut:
		wrong = append(wrong, detail("", "Item is already checked out", barcode))
	case statusDeclared, statusClaimed, statusIntellect, statusAged:
		wrong = append(wrong, detail("", fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			p.instance.Title, p.material.Name, p.item.Barcode, p.item.Status.Name), barcode))
	}
	if p.openLoan {
		wrong = append(wrong, detail("ITEM_HAS_OPEN_LOAN", "Cannot check out item that already has an open loan", barcode))
	}
	return wrong
}

// applyPolicy finds the loan policy and makes the checks that depend on it.
func (s *Service) applyPolicy(ctx context.Context, p *plan) ([]fault.Detail, error) {
	match, err := p.match()
	if err != nil {
		return nil, err
	}
	p.policy, err = s.Library.LoanPolicy(ctx, match.PolicyID)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Internal, "Loan policy %s could not be found, please check circulation rules", match.PolicyID)
	}
	if err != nil {
		return nil, err
	}
	p.limit, p.limited = p.policy.ItemLimitFor(match.Conditions)

	var wrong []fault.Detail
	reached, err := s.checkLimit(ctx, p)
	if err != nil {
		return nil, err
	}
	if reached != nil {
		wrong = append(wrong, *reached)
	}
	if !p.policy.Loanable {
		d := detail("ITEM_NOT_LOANABLE", "Item is not loanable", fault.Param("itemBarcode", p.req.ItemBarcode),
			fault.Param("loanPolicyId", p.policy.ID), fault.Param("loanPolicyName", p.policy.Name))
		d.OverridableBlock = block(ctx, "itemNotLoanableBlock", "circulation.override-item-not-loanable-block.post")
		wrong = append(wrong, d)
	}
	return wrong, nil
}

func (s *Service) compiledRules(ctx context.Context) (*policy.Rules, error) {
	rules, err := s.Library.Rules(ctx)
	var syntax *policy.SyntaxError
	if errors.As(err, &syntax) {
		return nil, fault.Wrap(err, fault.Internal, "%s", syntax.Message)
	}
	return rules, err
}

// match asks the rules. What they cannot be asked about is a fault of the
// library's records, with FOLIO's words.
func (p *plan) match() (policy.Match, error) {
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
		return policy.Match{}, fault.New(fault.Internal, "Unable to apply circulation rules to %s", missing)
	}
	return p.rules.Match(policy.KindLoan, policy.Criteria{
		MaterialType: p.item.MaterialTypeID,
		LoanType:     p.item.LoanTypeID(),
		PatronGroup:  p.user.PatronGroup,
		Location:     p.item.EffectiveLocationID,
		Library:      p.location.LibraryID,
		Campus:       p.location.CampusID,
		Institution:  p.location.InstitutionID,
	}), nil
}

// checkLimit counts the patron's loans that the limit is about. It is the check
// of the first pass and, under the lock, the one that decides.
func (s *Service) checkLimit(ctx context.Context, p *plan) (*fault.Detail, error) {
	if !p.limited {
		return nil, nil //nolint:nilnil // nothing wrong, nothing failed
	}
	var materialType, loanType string
	if p.limit.ByMaterialType {
		materialType = p.item.MaterialTypeID
	}
	if p.limit.ByLoanType {
		loanType = p.item.LoanTypeID()
	}
	n, err := s.Library.OpenLoans(ctx, p.user.ID, materialType, loanType)
	if err != nil || !p.limit.Reached(n) {
		return nil, err
	}
	d := detail(p.limit.Code, p.limit.Message, fault.Param("itemBarcode", p.req.ItemBarcode),
		fault.Param("itemLimit", strconv.Itoa(p.limit.Max)))
	d.OverridableBlock = block(ctx, "itemLimitBlock", "circulation.override-item-limit-block.post")
	return &d, nil
}

// block names a block that staff may lift, and the permission that the caller
// lacks for it.
func block(ctx context.Context, name, permission string) *fault.OverridableBlock {
	b := &fault.OverridableBlock{Name: name, MissingPermissions: []string{}}
	if !call.FromContext(ctx).Has(permission) {
		b.MissingPermissions = append(b.MissingPermissions, permission)
	}
	return b
}

// makeLoan computes the due date and the loan as it will be stored. Its id is
// chosen once, so that a repeated commit is recognised.
func (s *Service) makeLoan(p *plan) error {
	loanDate := p.req.LoanDate
	if loanDate.IsZero() {
		loanDate = Instant{s.Now()}
	}
	due, err := p.policy.DueDate(policy.Terms{LoanDate: loanDate.UTC(), PatronExpires: p.user.ExpirationDate.Time})
	var wrong *policy.DueDateError
	if errors.As(err, &wrong) {
		return fault.Validation(detail("", wrong.Message,
			fault.Param("loanPolicyId", p.policy.ID), fault.Param("loanPolicyName", p.policy.Name)))
	}
	if err != nil {
		return fmt.Errorf("computing the due date: %w", err)
	}
	if p.loan.ID == "" {
		p.loan.ID = cmp.Or(p.req.LoanID, uuid.NewString())
	}
	p.loan = Loan{
		ID:                                p.loan.ID,
		UserID:                            p.user.ID,
		ItemID:                            p.item.ID,
		ItemEffectiveLocationIDAtCheckOut: p.item.EffectiveLocationID,
		Status:                            Status{Name: "Open"},
		LoanDate:                          loanDate,
		DueDate:                           Instant{due},
		Action:                            "checkedout",
		ItemStatus:                        statusCheckedOut,
		LoanPolicyID:                      p.policy.ID,
		CheckoutServicePointID:            p.req.ServicePointID,
		PatronGroupIDAtCheckout:           p.user.PatronGroup,
	}
	return nil
}
