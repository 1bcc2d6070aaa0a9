package checkout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// plan is a check-out as its checks found it: what will be written if they pass, and the limit that
// the recount under the lock enforces.
type plan struct {
	req      Request
	facts    library.Facts
	loanDate library.Instant

	chosen choice

	limit      policy.ItemLimit
	limited    bool
	unblocked  bool           // staff lift the patron's blocks
	standing   *LimitStanding // at the last count of circulation; nil before the first
	overridden bool           // staff lift a block
	fills      string         // id of the borrower's own request; empty for none
	loan       library.Loan
	wrong      fault.List // in FOLIO's order
}

// refuse adds to what is wrong.
func (p *plan) refuse(found ...fault.Detail) { p.wrong = append(p.wrong, found...) }

// judgeRequest makes FOLIO's checks in FOLIO's order, outside any lock, and plans the loan if all
// pass. It collects what is wrong, after wrong, and skips a check whose subject was not found. Faults
// of stored configuration end it at once. The plan is never nil: it has what was found until then.
func (s *Service) judgeRequest(ctx context.Context, req Request, wrong fault.List) (p *plan, err error) {
	now := s.Now()
	p = &plan{req: req, loanDate: req.LoanDate, wrong: wrong}
	if p.loanDate.IsZero() {
		p.loanDate = library.Instant{Time: now}
	}
	if p.facts, err = s.readFacts(ctx, req); err != nil {
		return p, err
	}
	p.refuse(p.checkUserFound()...)
	p.judgeBlocks(ctx, now)
	p.refuse(slices.Concat(p.checkProxyFound(), p.checkUserActive(now), p.checkProxy(now))...)
	return p, s.judgeItem(ctx, p)
}

// readFacts reads everything that does not depend on the loan policy. If it fails, the facts are what
// was found until then.
func (s *Service) readFacts(ctx context.Context, req Request) (library.Facts, error) {
	facts, err := library.ReadFacts(ctx, s.Library, req.subjects())
	if err != nil || facts.User.ID == "" || facts.Item.ID == "" || req.ForceLoanPolicyID != "" {
		return facts, err
	}
	facts.Rules, err = library.ReadRules(ctx, s.Library)
	return facts, err
}

func (p *plan) checkUserFound() fault.List {
	switch {
	case p.facts.User.ID != "":
		return nil
	case p.req.UserBarcode == "":
		missing := p.req.NewBarcodeMissing("userBarcode")
		if !p.req.IsMisspelt("userBarcode") { // FOLIO's desk sends none for a patron without one, and reads this code
			missing.Code = codeUnknownUser
		}
		return fault.List{missing}
	}
	return refuseUnknown("userBarcode", p.req.UserBarcode)
}

func (p *plan) checkProxyFound() fault.List {
	if p.facts.Proxy.ID != "" || p.req.ProxyUserBarcode == "" {
		return nil
	}
	return refuseUnknown("proxyUserBarcode", p.req.ProxyUserBarcode)
}

const codeUnknownUser = "USER_BARCODE_NOT_FOUND"

// refuseUnknown refuses a barcode that is no patron's.
func refuseUnknown(key, barcode string) fault.List {
	return fault.List{fault.Refusal(codeUnknownUser, "Could not find user with matching barcode", fault.Param(key, barcode))}
}

// judgeBlocks refuses a patron who is blocked from borrowing, unless staff lift that.
func (p *plan) judgeBlocks(ctx context.Context, now time.Time) {
	if p.facts.User.ID == "" {
		return
	}
	if p.unblocked = p.req.OverrideBlocks.PatronBlock != nil; p.unblocked { // under the lock too
		p.liftBlock(ctx, library.PatronBlock)
		return
	}
	p.refuse(p.facts.ListBlocks(ctx, "borrowing", now,
		func(b library.ManualBlock) bool { return b.Borrowing }, func(b library.AutomatedBlock) bool { return b.BlockBorrowing })...)
}

func (p *plan) checkUserActive(now time.Time) fault.List {
	if p.facts.User.ID == "" {
		return nil
	}
	barcode := fault.Param("userBarcode", p.req.UserBarcode)
	return p.facts.User.CheckActive(now,
		fault.Refusal("USER_STATUS_CANNOT_BE_DETERMINED", "Cannot determine if user is active or not", barcode),
		fault.Refusal("USER_IS_INACTIVE_OR_EXPIRED", "Cannot check out to inactive user", barcode))
}

func (p *plan) checkProxy(now time.Time) fault.List {
	if p.facts.Proxy.ID == "" {
		return nil
	}
	barcode := fault.Param("proxyUserBarcode", p.req.ProxyUserBarcode)
	found := p.facts.Proxy.CheckActive(now,
		fault.Refusal("PROXY_STATUS_CANNOT_BE_DETERMINED", "Cannot determine if proxying user is active or not", barcode),
		fault.Refusal("PROXY_IS_INACTIVE_OR_EXPIRED", "Cannot check out via inactive proxying user", barcode))
	switch {
	case p.facts.User.ID == "":
	case p.facts.Proxy.ID == p.facts.User.ID:
		found = append(found, fault.Refusal("USER_CANNOT_BE_PROXY_FOR_THEMSELVES", "User cannot be proxy for themselves",
			fault.Param("proxyUserId", p.facts.Proxy.ID)))
	case !slices.ContainsFunc(p.facts.ProxyRelations, func(r library.ProxyRelation) bool { return r.IsActive(now) }):
		found = append(found, fault.Refusal(library.CodeProxyInvalid, "Cannot check out item via proxy when relationship is invalid", barcode))
	}
	return found
}

// judgeItem judges item, queue and loan policy, and plans the loan if nothing is wrong.
func (s *Service) judgeItem(ctx context.Context, p *plan) error {
	p.refuse(p.checkItem()...)
	p.judgeQueue()
	if p.facts.Item.ID != "" && (p.facts.User.ID != "" || p.req.ForceLoanPolicyID != "") { // a forced policy needs no patron
		if err := s.applyPolicy(ctx, p); err != nil {
			return err
		}
	}
	if p.refuse(p.checkOverride()...); len(p.wrong) > 0 {
		return nil
	}
	return s.planLoan(ctx, p)
}

func (p *plan) checkItem() fault.List {
	barcode := fault.Param("itemBarcode", p.req.ItemBarcode)
	switch {
	case p.facts.Item.ID != "":
	case p.req.ItemBarcode == "":
		return fault.List{p.req.NewBarcodeMissing("itemBarcode")}
	default:
		return fault.List{fault.Refusal(library.CodeItemNotFound, fmt.Sprintf("No item with barcode %s could be found", p.req.ItemBarcode), barcode)}
	}
	var found fault.List
	f := &p.facts
	switch f.Item.Status.Name {
	case library.StatusCheckedOut: // one refusal, also with an open loan, which is a second one in FOLIO
		if f.OnLoanToUser {
			return fault.List{fault.Refusal(library.CodeItemHadByPatron, "Item is already checked out to this patron", barcode)}
		}
		return fault.List{fault.Refusal(library.CodeItemCheckedOut, "Item is already checked out", barcode)}
	case library.StatusDeclaredLost, library.StatusClaimedReturned, library.StatusIntellectualItem, library.StatusAgedToLost:
		found = append(found, fault.Refusal(library.CodeItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			f.Instance.Title, f.Material.Name, f.Item.Barcode, f.Item.Status.Name), barcode))
	}
	if f.IsOnLoan() {
		found = append(found, fault.Refusal(library.CodeOpenLoan, "Cannot check out item that already has an open loan", barcode))
	}
	return found
}

// judgeQueue refuses an item that another patron waits for. It finds the borrower's own request, which
// the check-out fills.
func (p *plan) judgeQueue() {
	f := &p.facts
	p.fills = ""
	if f.User.ID == "" {
		return
	}
	first, exists := f.FindLent()
	switch {
	case !exists:
	case strings.EqualFold(first.RequesterID, f.User.ID):
		p.fills = first.ID
	default:
		p.refuse(fault.Refusal(library.CodeItemRequested, fmt.Sprintf(
			"%s (Barcode: %s) cannot be checked out %s it has been requested by another patron",
			f.Instance.Title, f.Item.Barcode, quotePatron(f.User.Personal.FullName()),
		), fault.Param("userBarcode", p.req.UserBarcode)))
	}
}

// quotePatron returns the only part of FOLIO's messages that names a patron.
func quotePatron(name string) string { return "to user " + name + " because" }

// liftBlock notes that the request lifts the block, or refuses that. The block's check is not made at
// all then, needed or not.
func (p *plan) liftBlock(ctx context.Context, b library.Block) {
	refused := b.CheckPermission(ctx)
	p.refuse(refused...)
	p.overridden = p.overridden || refused == nil
}

// checkOverride refuses an override without a comment, once for all blocks that it lifts. An
// override that is not allowed gets no second refusal.
func (p *plan) checkOverride() fault.List {
	if p.overridden && strings.TrimSpace(p.req.OverrideBlocks.Comment) == "" {
		return fault.List{fault.Refusal(library.CodeMissing, "Override should be performed with the comment specified", fault.Parameter{Key: "comment"})}
	}
	return nil
}
