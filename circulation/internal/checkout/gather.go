package checkout

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// facts are the records that a check-out is judged by.
type facts struct {
	user      User
	userFound bool
	group     Group

	manualBlocks    []ManualBlock
	automatedBlocks []AutomatedBlock

	proxy      User
	proxyFound bool
	relations  []ProxyRelation

	item      Item
	itemFound bool
	holdings  Holdings
	instance  Instance
	location  Location
	material  Named
	openLoan  bool

	titleLevel bool // requests for titles are switched on
	queue      []schemas.QueuedRequest

	rules *policy.Rules // nil when the request names the policy itself
}

// gather fetches into f everything that does not depend on the loan policy: first
// what the barcodes name, then what belongs to it, each in parallel calls. When it
// fails, f has what was found until then.
func (s *Service) gather(ctx context.Context, req Request, f *facts) error {
	if err := s.gatherNamed(ctx, req, f); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	if f.userFound {
		s.gatherUser(gctx, g, f)
	}
	if f.itemFound {
		s.gatherItem(gctx, g, f)
	}
	if f.userFound && f.itemFound && req.ForceLoanPolicyID == "" {
		g.Go(func() (err error) {
			f.rules, err = s.compiledRules(gctx)
			return err
		})
	}
	return g.Wait()
}

// gatherNamed finds what the barcodes name, and whether titles are requested.
func (s *Service) gatherNamed(ctx context.Context, req Request, f *facts) error {
	g, ctx := errgroup.WithContext(ctx)
	if PlausibleBarcode(req.UserBarcode) {
		g.Go(func() (err error) {
			f.user, f.userFound, err = fault.Found(s.Library.UserByBarcode(ctx, req.UserBarcode))
			return err
		})
	}
	if PlausibleBarcode(req.ProxyUserBarcode) {
		g.Go(func() (err error) {
			f.proxy, f.proxyFound, err = fault.Found(s.Library.UserByBarcode(ctx, req.ProxyUserBarcode))
			return err
		})
	}
	if PlausibleBarcode(req.ItemBarcode) {
		g.Go(func() (err error) {
			f.item, f.itemFound, err = fault.Found(s.Library.ItemByBarcode(ctx, req.ItemBarcode))
			return err
		})
	}
	g.Go(func() (err error) {
		f.titleLevel, err = s.Library.TitleLevelRequests(ctx)
		return err
	})
	return g.Wait()
}

// gatherUser fetches what belongs to the patron.
func (s *Service) gatherUser(ctx context.Context, g *errgroup.Group, f *facts) {
	if f.user.PatronGroup != "" {
		g.Go(func() (err error) {
			f.group, _, err = fault.Found(s.Library.Group(ctx, f.user.PatronGroup))
			return err
		})
	}
	if f.proxyFound && f.proxy.ID != f.user.ID {
		g.Go(func() (err error) {
			f.relations, err = s.Library.ProxyRelations(ctx, f.proxy.ID, f.user.ID)
			return err
		})
	}
	s.gatherBlocks(ctx, g, f)
}

// gatherItem fetches what belongs to the item.
func (s *Service) gatherItem(ctx context.Context, g *errgroup.Group, f *facts) {
	item := f.item
	g.Go(func() (err error) {
		f.openLoan, err = s.Library.HasOpenLoan(ctx, item.ID)
		return err
	})
	s.gatherTitle(ctx, g, f)
	if item.EffectiveLocationID != "" {
		g.Go(func() (err error) {
			f.location, _, err = fault.Found(s.Library.Location(ctx, item.EffectiveLocationID))
			return err
		})
	}
	if item.MaterialTypeID != "" {
		g.Go(func() (err error) {
			f.material, _, err = fault.Found(s.Library.MaterialType(ctx, item.MaterialTypeID))
			return err
		})
	}
}

// gatherItemAgain fetches the item by its id, and everything that belongs to it as
// it is now. What the item no longer has is left out.
func (s *Service) gatherItemAgain(ctx context.Context, f *facts) error {
	item, err := s.Library.Item(ctx, f.item.ID)
	if err != nil {
		return fmt.Errorf("reading the changed item again: %w", err)
	}
	titleLevel, err := s.Library.TitleLevelRequests(ctx)
	if err != nil {
		return fmt.Errorf("reading again whether titles are requested: %w", err)
	}
	f.item, f.titleLevel = item, titleLevel
	f.openLoan, f.queue = false, nil
	f.holdings, f.instance, f.location, f.material = Holdings{}, Instance{}, Location{}, Named{}
	g, gctx := errgroup.WithContext(ctx)
	s.gatherItem(gctx, g, f)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reading what belongs to the changed item: %w", err)
	}
	return nil
}
