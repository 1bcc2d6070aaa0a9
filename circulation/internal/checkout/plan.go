package checkout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// codeOpenLoan is FOLIO's.
const codeOpenLoan = "ITEM_HAS_OPEN_LOAN"

// plan is a check-out as its checks found it: what will be written if they pass, and the limit that
// the recount under the lock enforces.
type plan struct {
	req      Request
	facts    library.Facts
	loanDate library.Instant

	policy policy.LoanPolicy
	// overdueFine and lostItem are the other policies that the rules name. They go with the loan.
	// They are empty if the rules were not asked.
	overdueFine string
	lostItem    string
	match       policy.Match // of the rules; zero if they were not asked

	limit      policy.ItemLimit
	limited    bool
	unblocked  bool           // staff lift the patron's blocks
	standing   *LimitStanding // at the last count of circulation; nil before the first
	overridden bool           // staff lift a block
	fills      string         // id of the borrower's own request; empty for none
	loan       library.Loan
}

// validateRequest judges the request and returns everything that is wrong as one Invalid fault. The
// plan is never nil.
func (s *Service) validateRequest(ctx context.Context, req Request) (*plan, error) {
	p, found, err := s.judgeRequest(ctx, req)
	if err != nil {
		return p, err
	}
	return p, found.Err()
}

// judgeRequest makes FOLIO's checks in FOLIO's order, outside any lock, and plans the loan if all
// pass. It collects what is wrong and skips a check whose subject was not found. Faults of stored
// configuration end it at once. The plan then has what was found until then.
func (s *Service) judgeRequest(ctx context.Context, req Request) (p *plan, found fault.List, err error) {
	now := s.Now()
	p = &plan{req: req, loanDate: req.LoanDate}
	if p.loanDate.IsZero() {
		p.loanDate = library.Instant{Time: now}
	}
	if err := s.readRecords(ctx, p); err != nil {
		return p, nil, err
	}
	found = slices.Concat(
		req.check(), checkFound(p.facts.UserFound, "userBarcode", req.UserBarcode), p.checkBlocks(ctx, now),
		checkFound(p.facts.ProxyFound || req.ProxyUserBarcode == "", "proxyUserBarcode", req.ProxyUserBarcode),
		p.checkUserActive(now), p.checkProxy(now), p.checkItem(), p.checkQueue(),
	)
	if p.facts.ItemFound && (p.facts.UserFound || req.ForceLoanPolicyID != "") { // a forced policy needs no patron
		more, err := s.applyPolicy(ctx, p)
		if err != nil {
			return p, nil, err
		}
		found = append(found, more...)
	}
	found = append(found, p.checkOverride()...)
	if len(found) == 0 {
		found, err = s.makeLoan(ctx, p)
	}
	return p, found, err
}

// readRecords reads everything that does not depend on the loan policy. If it fails, p has what was
// found until then.
func (s *Service) readRecords(ctx context.Context, p *plan) error {
	f := &p.facts
	if err := f.Read(ctx, s.Library, p.req.UserBarcode, p.req.ProxyUserBarcode, p.req.ItemBarcode); err != nil {
		return err
	}
	if !f.UserFound || !f.ItemFound || p.req.ForceLoanPolicyID != "" {
		return nil
	}
	var err error
	f.Rules, err = library.ReadRules(ctx, s.Library)
	return err
}

// checkBlocks refuses a patron who is blocked from borrowing.
func (p *plan) checkBlocks(ctx context.Context, now time.Time) fault.List {
	if !p.facts.UserFound {
		return nil
	}
	if lifted, found := p.liftBlock(ctx, patronBlock); lifted {
		p.unblocked = true // under the lock too
		return found
	}
	found := p.facts.ListBlocks("borrowing", now,
		func(b library.ManualBlock) bool { return b.Borrowing }, func(b library.AutomatedBlock) bool { return b.BlockBorrowing })
	for i := range found {
		found[i].OverridableBlock = patronBlock.check.Describe(ctx)
	}
	return found
}

func (p *plan) checkUserActive(now time.Time) fault.List {
	if !p.facts.UserFound {
		return nil
	}
	barcode := fault.Param("userBarcode", p.req.UserBarcode)
	return p.facts.User.CheckActive(now,
		fault.Refusal("USER_STATUS_CANNOT_BE_DETERMINED", "Cannot determine if user is active or not", barcode),
		fault.Refusal("USER_IS_INACTIVE_OR_EXPIRED", "Cannot check out to inactive user", barcode))
}

// checkFound refuses a barcode that is missing or no patron's.
func checkFound(found bool, key, barcode string) fault.List {
	if found {
		return nil
	}
	return fault.List{library.NewUserNotFound(key, barcode)}
}

func (p *plan) checkProxy(now time.Time) fault.List {
	if !p.facts.ProxyFound {
		return nil
	}
	barcode := fault.Param("proxyUserBarcode", p.req.ProxyUserBarcode)
	found := p.facts.Proxy.CheckActive(now,
		fault.Refusal("PROXY_STATUS_CANNOT_BE_DETERMINED", "Cannot determine if proxying user is active or not", barcode),
		fault.Refusal("PROXY_IS_INACTIVE_OR_EXPIRED", "Cannot check out via inactive proxying user", barcode))
	switch {
	case !p.facts.UserFound:
	case p.facts.Proxy.ID == p.facts.User.ID:
		found = append(found, fault.Refusal("USER_CANNOT_BE_PROXY_FOR_THEMSELVES", "User cannot be proxy for themselves",
			fault.Param("proxyUserId", p.facts.Proxy.ID)))
	case !slices.ContainsFunc(p.facts.ProxyRelations, func(r library.ProxyRelation) bool { return r.IsActive(now) }):
		found = append(found, fault.Refusal("PROXY_RELATIONSHIP_INVALID", "Cannot check out item via proxy when relationship is invalid", barcode))
	}
	return found
}

func (p *plan) checkItem() fault.List {
	if !p.facts.ItemFound {
		return fault.List{library.NewItemNotFound(p.req.ItemBarcode)}
	}
	barcode := fault.Param("itemBarcode", p.req.ItemBarcode)
	var found fault.List
	book := p.facts.Copy
	switch book.Item.Status.Name {
	case library.StatusCheckedOut:
		found = append(found, fault.Refusal(library.CodeItemCheckedOut, "Item is already checked out", barcode))
	case library.StatusDeclaredLost, library.StatusClaimedReturned, library.StatusIntellectualItem, library.StatusAgedToLost:
		found = append(found, fault.Refusal(library.CodeItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			book.Instance.Title, book.Material.Name, book.Item.Barcode, book.Item.Status.Name), barcode))
	}
	if p.facts.OnLoan {
		found = append(found, fault.Refusal(codeOpenLoan, "Cannot check out item that already has an open loan", barcode))
	}
	return found
}

// Condense returns the errors of a refusal as people read them: one for an item on loan, whose
// status and open loan are an error each. FOLIO's desk hides the second one too, and needs both.
func Condense(found fault.List) fault.List {
	if !slices.ContainsFunc(found, func(d fault.Detail) bool { return d.Code == library.CodeItemCheckedOut }) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(d fault.Detail) bool { return d.Code == codeOpenLoan })
}

// checkQueue refuses an item that another patron waits for, and notes the borrower's own request,
// which the check-out fills.
func (p *plan) checkQueue() fault.List {
	p.fills = ""
	f := &p.facts
	if !f.UserFound || !f.ItemFound {
		return nil
	}
	first, exists := f.Queue.FindLent(f.Copy)
	switch {
	case !exists:
		return nil
	case first.RequesterID == f.User.ID:
		p.fills = first.ID
		return nil
	}
	return fault.List{fault.Refusal(library.CodeItemRequested, fmt.Sprintf(
		"%s (Barcode: %s) cannot be checked out %s it has been requested by another patron",
		f.Copy.Instance.Title, f.Copy.Item.Barcode, quotePatron(f.User.Personal.FullName()),
	), fault.Param("userBarcode", p.req.UserBarcode))}
}

// quotePatron returns the only part of FOLIO's messages that names a patron.
func quotePatron(name string) string { return "to user " + name + " because" }
