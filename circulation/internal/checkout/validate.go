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

// plan is a check-out that passed its checks: what will be written, and what the
// recount under the lock needs.
type plan struct {
	facts
	req      Request
	loanDate Instant
	policy   policy.LoanPolicy
	// overdueFine and lostItem are the other policies that the rules name; they go
	// with the loan. Empty when no rules were asked.
	overdueFine string
	lostItem    string
	limit       policy.ItemLimit
	limited     bool
	overridden  bool   // staff lift a block
	fills       string // id of the borrower's own request; empty for none
	loan        Loan
}

// validate makes FOLIO's checks in FOLIO's order, outside any lock. What is
// wrong is collected, and a check whose subject was not found is skipped; all of
// it is one Invalid fault. Faults of stored configuration end it at once.
func (s *Service) validate(ctx context.Context, req Request) (*plan, error) {
	f, err := s.gather(ctx, req)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	p := &plan{facts: *f, req: req, loanDate: req.LoanDate}
	if p.loanDate.IsZero() {
		p.loanDate = Instant{now}
	}
	wrong := slices.Concat(
		req.check(), p.checkUserFound(), p.checkBlocks(ctx, now), p.checkProxyFound(),
		p.checkUserActive(now), p.checkProxy(now), p.checkItem(), p.checkQueue(),
	)
	if p.itemFound && (p.userFound || req.ForceLoanPolicyID != "") { // a forced policy is no matter of the patron
		more, err := s.applyPolicy(ctx, p)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, more...)
	}
	if wrong = append(wrong, p.checkOverride()...); len(wrong) > 0 {
		return nil, fault.Validation(wrong...)
	}
	return p, s.makeLoan(ctx, p)
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
	return []fault.Detail{detail("", fmt.Sprintf("No item with barcode %s could be found", p.req.ItemBarcode),
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
		wrong = append(wrong, detail("", fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			p.instance.Title, p.material.Name, p.item.Barcode, p.item.Status.Name), barcode))
	}
	if p.openLoan {
		wrong = append(wrong, detail("ITEM_HAS_OPEN_LOAN", "Cannot check out item that already has an open loan", barcode))
	}
	return wrong
}
