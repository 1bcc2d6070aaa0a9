package checkout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"checkoutlock/circulation/internal/policy"
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

// plan is a check-out as its checks found it: what will be written once it passed
// them, and what the recount under the lock needs.
type plan struct {
	facts
	req      Request
	loanDate Instant
	policy   policy.LoanPolicy
	// overdueFine and lostItem are the other policies that the rules name; they go
	// with the loan. Empty when no rules were asked.
	overdueFine string
	lostItem    string
	match       policy.Match // of the rules, zero when none were asked
	limit       policy.ItemLimit
	limited     bool
	standing    *LimitStanding // at the last count; nil before the first
	overridden  bool           // staff lift a block
	fills       string         // id of the borrower's own request; empty for none
	loan        Loan
}

// validate is judge for whoever wants to lend: everything that is wrong is one
// Invalid fault. The plan is never nil.
func (s *Service) validate(ctx context.Context, req Request) (*plan, error) {
	p, wrong, err := s.judge(ctx, req)
	if err == nil && len(wrong) > 0 {
		err = fault.Validation(wrong...)
	}
	return p, err
}

// judge makes FOLIO's checks in FOLIO's order, outside any lock, and plans the
// loan if all pass. What is wrong is collected, and a check whose subject was not
// found is skipped. Faults of stored configuration end it at once; the plan has
// what was found out until then.
func (s *Service) judge(ctx context.Context, req Request) (p *plan, wrong []fault.Detail, err error) {
	now := s.Now()
	p = &plan{req: req, loanDate: req.LoanDate}
	if p.loanDate.IsZero() {
		p.loanDate = Instant{now}
	}
	if err := s.gather(ctx, req, &p.facts); err != nil {
		return p, nil, err
	}
	wrong = slices.Concat(
		req.check(), p.checkUserFound(), p.checkBlocks(ctx, now), p.checkProxyFound(),
		p.checkUserActive(now), p.checkProxy(now), p.checkItem(), p.checkQueue(),
	)
	if p.itemFound && (p.userFound || req.ForceLoanPolicyID != "") { // a forced policy is no matter of the patron
		more, err := s.applyPolicy(ctx, p, "")
		if err != nil {
			return p, nil, err
		}
		wrong = append(wrong, more...)
	}
	if wrong = append(wrong, p.checkOverride()...); len(wrong) == 0 {
		wrong, err = s.makeLoan(ctx, p)
	}
	return p, wrong, err
}

func userNotFound(key, barcode string) fault.Detail {
	return detail("USER_BARCODE_NOT_FOUND", "Could not find user with matching barcode", fault.Param(key, barcode))
}

func (p *plan) checkUserFound() []fault.Detail {
	if p.userFound {
		return nil
	}
	return []fault.Detail{userNotFound("userBarcode", p.req.UserBarcode)}
}

func (p *plan) checkUserActive(now time.Time) []fault.Detail {
	barcode := fault.Param("userBarcode", p.req.UserBarcode)
	switch {
	case !p.userFound:
	case p.user.Active == nil:
		return []fault.Detail{detail("", "Cannot determine if user is active or not", barcode)}
	case p.user.Inactive(now):
		return []fault.Detail{detail("", "Cannot check out to inactive user", barcode)}
	}
	return nil
}

func (p *plan) checkItemFound() []fault.Detail {
	if p.itemFound {
		return nil
	}
	return []fault.Detail{uncoded(CauseItemNotFound, fmt.Sprintf("No item with barcode %s could be found", p.req.ItemBarcode),
		fault.Param("itemBarcode", p.req.ItemBarcode))}
}

func (p *plan) checkItem() []fault.Detail {
	if !p.itemFound {
		return p.checkItemFound()
	}
	barcode := fault.Param("itemBarcode", p.req.ItemBarcode)
	var wrong []fault.Detail
	switch p.item.Status.Name {
	case statusCheckedOut:
		wrong = append(wrong, detail("", "Item is already checked out", barcode))
	case statusDeclared, statusClaimed, statusIntellect, statusAged:
		wrong = append(wrong, uncoded(CauseItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			p.instance.Title, p.material.Name, p.item.Barcode, p.item.Status.Name), barcode))
	}
	if p.openLoan {
		wrong = append(wrong, detail("ITEM_HAS_OPEN_LOAN", "Cannot check out item that already has an open loan", barcode))
	}
	return wrong
}
