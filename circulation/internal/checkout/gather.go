package checkout

import (
	"context"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// facts are the records that a check-out is judged by.
type facts struct {
	user      User
	userFound bool
	group     Group

	item      Item
	itemFound bool
	holdings  Holdings
	instance  Instance
	location  Location
	material  Named
	openLoan  bool

	rules *policy.Rules
}

// gather fetches everything that does not depend on the loan policy, in two
// rounds of parallel calls.
func (s *Service) gather(ctx context.Context, req Request) (*facts, error) {
	f := &facts{}
	g, gctx := errgroup.WithContext(ctx)
	if plausible(req.UserBarcode) {
		g.Go(func() (err error) {
			f.user, f.userFound, err = found(s.Library.UserByBarcode(gctx, req.UserBarcode))
			return err
		})
	}
	if plausible(req.ItemBarcode) {
		g.Go(func() (err error) {
			f.item, f.itemFound, err = found(s.Library.ItemByBarcode(gctx, req.ItemBarcode))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}

	g, gctx = errgroup.WithContext(ctx)
	if f.userFound && f.user.PatronGroup != "" {
		g.Go(func() (err error) {
			f.group, _, err = found(s.Library.Group(gctx, f.user.PatronGroup))
			return err
		})
	}
	if f.itemFound {
		s.gatherItem(gctx, g, f)
	}
	if f.userFound && f.itemFound {
		g.Go(func() (err error) {
			f.rules, err = s.compiledRules(gctx)
			return err
		})
	}
	return f, g.Wait()
}

func (s *Service) gatherItem(ctx context.Context, g *errgroup.Group, f *facts) {
	item := f.item
	g.Go(func() (err error) {
		f.openLoan, err = s.Library.HasOpenLoan(ctx, item.ID)
		return err
	})
	g.Go(func() (err error) {
		if f.holdings, _, err = found(s.Library.Holdings(ctx, item.HoldingsRecordID)); err != nil || f.holdings.InstanceID == "" {
			return err
		}
		f.instance, _, err = found(s.Library.Instance(ctx, f.holdings.InstanceID))
		return err
	})
	if item.EffectiveLocationID != "" {
		g.Go(func() (err error) {
			f.location, _, err = found(s.Library.Location(ctx, item.EffectiveLocationID))
			return err
		})
	}
	if item.MaterialTypeID != "" {
		g.Go(func() (err error) {
			f.material, _, err = found(s.Library.MaterialType(ctx, item.MaterialTypeID))
			return err
		})
	}
}

// found turns "no such record" into false.
func found[T any](record T, err error) (T, bool, error) {
	if fault.Is(err, fault.NotFound) {
		return record, false, nil
	}
	return record, err == nil, err
}
