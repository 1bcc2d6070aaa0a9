package checkout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// plan is a check-out as its checks found it: what will be written if they pass, and what the
// recount under the lock needs.
type plan struct {
	req      Request
	facts    library.Facts
	proxy    proxy
	openLoan bool // the item is on loan
	// counted counts the patron's open loans as they were when the records were read.
	counted  func(materialTypeID, loanTypeID string) int
	loanDate library.Instant

	policy policy.LoanPolicy
	// overdueFine and lostItem are the other policies that the rules name. They go with the loan.
	// They are empty if the rules were not asked.
	overdueFine string
	lostItem    string
	match       policy.Match // of the rules; zero if they were not asked

	limit      policy.ItemLimit
	limited    bool
	standing   *LimitStanding // at the last count; nil before the first
	overridden bool           // staff lift a block
	fills      string         // id of the borrower's own request; empty for none
	loan       library.Loan
}

// proxy is the patron who borrows for the other.
type proxy struct {
	user      library.User
	found     bool
	relations []library.ProxyRelation
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
		req.check(), p.facts.CheckUserFound(req.UserBarcode), p.checkBlocks(ctx, now), p.checkProxyFound(),
		p.checkUserActive(now), p.checkProxy(now), p.checkItem(), p.checkQueue(),
	)
	if p.facts.ItemFound && (p.facts.UserFound || req.ForceLoanPolicyID != "") { // a forced policy needs no patron
		more, err := s.applyPolicy(ctx, p, p.countRead)
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

// readRecords reads everything that does not depend on the loan policy: in one call what the
// barcodes name and what belongs to it, then the records that are cached. If it fails, p has what
// was found until then.
func (s *Service) readRecords(ctx context.Context, p *plan) (err error) {
	if p.facts.Queue.TitleLevel, err = s.Library.TitleLevelRequests(ctx); err != nil {
		return err
	}
	seen, err := s.Library.Snapshot(ctx, schemas.CheckOutSubjects{
		UserBarcode: library.KeepBarcode(p.req.UserBarcode), ProxyUserBarcode: library.KeepBarcode(p.req.ProxyUserBarcode),
		ItemBarcode: library.KeepBarcode(p.req.ItemBarcode), TitleLevel: p.facts.Queue.TitleLevel,
	})
	if err != nil {
		return err
	}
	p.notePatrons(seen)
	p.noteItem(seen)
	g, ctx := errgroup.WithContext(ctx)
	library.FindInto(ctx, g, &p.facts.Group, new(bool), p.facts.User.PatronGroup, s.Library.Group)
	if p.facts.UserFound && p.facts.ItemFound && p.req.ForceLoanPolicyID == "" {
		g.Go(func() (err error) {
			p.facts.Rules, err = library.ReadRules(ctx, s.Library)
			return err
		})
	}
	s.readShelf(ctx, g, p)
	return g.Wait()
}

// notePatrons takes over what belongs to the patron and the proxy.
func (p *plan) notePatrons(seen library.Snapshot) {
	if seen.User != nil {
		p.facts.User, p.facts.UserFound = *seen.User, true
	}
	if seen.ProxyUser != nil {
		p.proxy.user, p.proxy.found = *seen.ProxyUser, true
	}
	p.proxy.relations = seen.ProxyRelations
	p.facts.ManualBlocks, p.facts.AutomatedBlocks = seen.ManualBlocks, seen.AutomatedBlocks
	p.counted = seen.CountOpenLoans
}

// noteItem takes over what belongs to the item. What the item no longer has is empty then.
func (p *plan) noteItem(seen library.Snapshot) {
	p.facts.Copy = library.Copy{Holdings: seen.Holdings, Instance: seen.Instance}
	if seen.Item != nil {
		p.facts.Copy.Item, p.facts.ItemFound = *seen.Item, true
	}
	p.openLoan, p.facts.Queue.Requests = seen.OnLoan, seen.Requests
}

// readShelf adds calls to the group that read location and material type of the item.
func (s *Service) readShelf(ctx context.Context, g *errgroup.Group, p *plan) {
	book := &p.facts.Copy
	library.FindInto(ctx, g, &book.Location, new(bool), book.Item.EffectiveLocationID, s.Library.Location)
	library.FindInto(ctx, g, &book.Material, new(bool), book.Item.MaterialTypeID, s.Library.MaterialType)
}

// reloadItem reads the item by its id, and everything that belongs to it as it is now.
func (s *Service) reloadItem(ctx context.Context, p *plan) error {
	id := p.facts.Copy.Item.ID
	titleLevel, err := s.Library.TitleLevelRequests(ctx)
	if err != nil {
		return fmt.Errorf("reading again whether titles are requested: %w", err)
	}
	seen, err := s.Library.Snapshot(ctx, schemas.CheckOutSubjects{ItemID: id, TitleLevel: titleLevel})
	if err == nil && seen.Item == nil {
		err = fault.New(fault.NotFound, "No item has the id %s", id)
	}
	if err != nil {
		return fmt.Errorf("reading the changed item again: %w", err)
	}
	p.facts.Queue.TitleLevel = titleLevel
	p.noteItem(seen)
	g, ctx := errgroup.WithContext(ctx)
	s.readShelf(ctx, g, p)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reading what belongs to the changed item: %w", err)
	}
	return nil
}

// checkBlocks refuses a patron who is blocked from borrowing.
func (p *plan) checkBlocks(ctx context.Context, now time.Time) fault.List {
	if !p.facts.UserFound {
		return nil
	}
	if lifted, found := p.liftBlock(ctx, patronBlock); lifted {
		return found
	}
	found := p.facts.ListBlocks("borrowing", now,
		func(b library.ManualBlock) bool { return b.Borrowing }, func(b library.AutomatedBlock) bool { return b.BlockBorrowing })
	for i := range found {
		found[i].OverridableBlock = patronBlock.describe(ctx)
	}
	return found
}

func (p *plan) checkUserActive(now time.Time) fault.List {
	if !p.facts.UserFound {
		return nil
	}
	return p.facts.User.CheckActive(now, "Cannot determine if user is active or not", "Cannot check out to inactive user",
		fault.Param("userBarcode", p.req.UserBarcode))
}

func (p *plan) checkProxyFound() fault.List {
	if p.req.ProxyUserBarcode == "" || p.proxy.found {
		return nil
	}
	return fault.List{library.NewUserNotFound("proxyUserBarcode", p.req.ProxyUserBarcode)}
}

func (p *plan) checkProxy(now time.Time) fault.List {
	if !p.proxy.found {
		return nil
	}
	barcode := fault.Param("proxyUserBarcode", p.req.ProxyUserBarcode)
	found := p.proxy.user.CheckActive(now, "Cannot determine if proxying user is active or not",
		"Cannot check out via inactive proxying user", barcode)
	switch {
	case !p.facts.UserFound:
	case p.proxy.user.ID == p.facts.User.ID:
		found = append(found, fault.Refusal("USER_CANNOT_BE_PROXY_FOR_THEMSELVES", "User cannot be proxy for themselves",
			fault.Param("proxyUserId", p.proxy.user.ID)))
	case !slices.ContainsFunc(p.proxy.relations, func(r library.ProxyRelation) bool { return r.IsActive(now) }):
		found = append(found, fault.Refusal("", "Cannot check out item via proxy when relationship is invalid", barcode))
	}
	return found
}

func (p *plan) checkItem() fault.List {
	if !p.facts.ItemFound {
		return p.facts.CheckItemFound(p.req.ItemBarcode)
	}
	barcode := fault.Param("itemBarcode", p.req.ItemBarcode)
	var found fault.List
	book := p.facts.Copy
	switch book.Item.Status.Name {
	case library.StatusCheckedOut:
		found = append(found, fault.Refusal("", "Item is already checked out", barcode))
	case library.StatusDeclaredLost, library.StatusClaimedReturned, library.StatusIntellectualItem, library.StatusAgedToLost:
		found = append(found, library.NewCausedDetail(library.CauseItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked out",
			book.Instance.Title, book.Material.Name, book.Item.Barcode, book.Item.Status.Name), barcode))
	}
	if p.openLoan {
		found = append(found, fault.Refusal("ITEM_HAS_OPEN_LOAN", "Cannot check out item that already has an open loan", barcode))
	}
	return found
}

// checkQueue refuses an item that another patron waits for, and notes the borrower's own request,
// which the check-out fills.
func (p *plan) checkQueue() fault.List {
	p.fills = ""
	f := &p.facts
	if !f.UserFound || !f.ItemFound {
		return nil
	}
	first, exists := f.Queue.FindFirst(f.Copy)
	switch {
	case !exists:
		return nil
	case first.RequesterID == f.User.ID:
		p.fills = first.ID
		return nil
	}
	return fault.List{library.NewCausedDetail(library.CauseItemRequested, fmt.Sprintf(
		"%s (Barcode: %s) cannot be checked out %s it has been requested by another patron",
		f.Copy.Instance.Title, f.Copy.Item.Barcode, quotePatron(f.User.Personal.FullName()),
	), fault.Param("userBarcode", p.req.UserBarcode))}
}

// quotePatron returns the only part of FOLIO's messages that names a patron.
func quotePatron(name string) string { return "to user " + name + " because" }
