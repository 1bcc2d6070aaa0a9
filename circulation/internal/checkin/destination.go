package checkin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// delivery is the fulfillmentPreference of a request whose item is brought to the patron.
const delivery = "Delivery"

// chooseDestination completes the commit with where the item goes: to the first request that it can
// fill, else home.
func (s *Service) chooseDestination(ctx context.Context, book library.Copy, queue library.Queue, commit *schemas.CheckIn) error {
	commit.TitleLevel = queue.TitleLevel
	if first, exists := queue.FindFirst(book); exists {
		return s.fillRequest(ctx, first, commit)
	}
	commit.ItemStatus = library.StatusAvailable
	if !book.Location.IsServedBy(commit.ServicePointID) {
		commit.ItemStatus = library.StatusInTransit
		commit.InTransitDestinationServicePointID = book.Location.PrimaryServicePoint
	}
	return nil
}

// fillRequest sets the item aside for a request: on the hold shelf here, on its way to the pickup
// service point, or ready to be brought.
func (s *Service) fillRequest(ctx context.Context, first schemas.QueuedRequest, commit *schemas.CheckIn) error {
	commit.RequestID = first.ID
	switch {
	case first.FulfillmentPreference == delivery:
		commit.ItemStatus, commit.RequestStatus = library.StatusAwaitingDelivery, schemas.RequestAwaitingDelivery
	case first.PickupServicePointID == "":
		return fault.Validation(fault.Refusal("",
			"Failed to check in item due to the highest priority request missing a pickup service point",
			fault.Parameter{Key: "pickupServicePointId"}))
	case !strings.EqualFold(first.PickupServicePointID, commit.ServicePointID):
		commit.ItemStatus, commit.RequestStatus = library.StatusInTransit, schemas.RequestInTransit
		commit.InTransitDestinationServicePointID = first.PickupServicePointID
	default:
		commit.ItemStatus, commit.RequestStatus = library.StatusAwaitingPickup, schemas.RequestAwaitingPickup
		return s.setExpiration(ctx, first, commit)
	}
	return nil
}

// setExpiration says how long the item waits on the shelf. A repeated check-in of an item that
// waits does not extend that.
func (s *Service) setExpiration(ctx context.Context, first schemas.QueuedRequest, commit *schemas.CheckIn) error {
	commit.HoldShelfExpirationDate = first.HoldShelfExpirationDate
	if commit.HoldShelfExpirationDate != "" {
		return nil
	}
	point, _, err := fault.Found(s.Library.PickupPoint(ctx, first.PickupServicePointID))
	if err != nil {
		return fmt.Errorf("finding the pickup service point: %w", err)
	}
	if until, ends := point.HoldShelf.Until(time.Now().UTC()); ends {
		commit.HoldShelfExpirationDate = library.Instant{Time: until}.Text()
	}
	return nil
}
