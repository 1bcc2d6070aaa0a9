package checkout

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Queues finds who waits for an item.
type Queues interface {
	// TitleLevelRequests tells whether requests for titles are switched on. It may
	// be two seconds old.
	TitleLevelRequests(ctx context.Context) (bool, error)
	// ItemRequests returns the open requests that name the item, in any order. It
	// is never cached.
	ItemRequests(ctx context.Context, itemID string) ([]schemas.QueuedRequest, error)
	// TitleRequests returns the open requests for the instance and for its items,
	// in any order. It is never cached.
	TitleRequests(ctx context.Context, instanceID string) ([]schemas.QueuedRequest, error)
}

// gatherTitle fetches the item's holdings and instance, and its queue, which is
// that of the instance with title-level requests. An item without an instance
// has a queue of its own.
func (s *Service) gatherTitle(ctx context.Context, g *errgroup.Group, f *facts) {
	item := f.item
	ofItem := func() (err error) {
		f.queue, err = s.Library.ItemRequests(ctx, item.ID)
		return err
	}
	if !f.titleLevel {
		g.Go(ofItem)
	}
	g.Go(func() (err error) {
		if f.holdings, _, err = fault.Found(s.Library.Holdings(ctx, item.HoldingsRecordID)); err != nil {
			return err
		}
		instanceID := f.holdings.InstanceID
		switch {
		case f.titleLevel && instanceID == "":
			g.Go(ofItem)
		case f.titleLevel:
			g.Go(func() (err error) {
				f.queue, err = s.Library.TitleRequests(ctx, instanceID)
				return err
			})
		}
		if instanceID != "" {
			f.instance, _, err = fault.Found(s.Library.Instance(ctx, instanceID))
		}
		return err
	})
}

// checkQueue refuses an item that somebody else waits for, and notes the
// borrower's own request, which the check-out fills.
func (p *plan) checkQueue() []fault.Detail {
	p.fills = ""
	if !p.userFound || !p.itemFound {
		return nil
	}
	first, waits := schemas.FirstFilledBy(p.queue, p.item.ID, p.holdings.InstanceID, p.titleLevel)
	switch {
	case !waits:
		return nil
	case first.RequesterID == p.user.ID:
		p.fills = first.ID
		return nil
	}
	return []fault.Detail{uncoded(CauseItemRequested, fmt.Sprintf(
		"%s (Barcode: %s) cannot be checked out %s it has been requested by another patron",
		p.instance.Title, p.item.Barcode, toUserBecause(p.user.Personal.FullName()),
	), fault.Param("userBarcode", p.req.UserBarcode))}
}

// toUserBecause is the only part of FOLIO's messages that names a patron.
func toUserBecause(name string) string { return "to user " + name + " because" }

// holdWaits tells whether a hold that nothing is set aside for yet waits for the
// item, besides the request that is filled now.
func (p *plan) holdWaits() bool {
	for _, r := range p.queue {
		if r.ID != p.fills && r.RequestType == "Hold" && r.Status == schemas.RequestNotYetFilled &&
			r.FilledBy(p.item.ID, p.holdings.InstanceID, p.titleLevel) {
			return true
		}
	}
	return false
}
