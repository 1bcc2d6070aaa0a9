package checkout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The statuses of an item that waits for the patron who requested it.
const (
	statusAwaitingPickup   = "Awaiting pickup"
	statusAwaitingDelivery = "Awaiting delivery"
)

// delivery is the fulfillmentPreference of a request whose item is brought.
const delivery = "Delivery"

// PickupPoint is what matters of a service point where a patron fetches items.
type PickupPoint struct {
	ID             string                 `json:"id"`
	PickupLocation bool                   `json:"pickupLocation"`
	HoldShelf      policy.HoldShelfPeriod `json:"holdShelfExpiryPeriod"`
}

// ReturnLibrary is the Library of check-ins.
type ReturnLibrary interface {
	Library
	// PickupPoint returns a service point. Fault: NotFound.
	PickupPoint(ctx context.Context, id string) (PickupPoint, error)
}

// waiting is the queue of an item that comes back.
type waiting struct {
	titleLevel bool
	first      schemas.QueuedRequest
	any        bool // first is the request that the item can fill
}

// whoWaits reads the item's queue, which is that of the instance with title-level
// requests.
func (r *Returns) whoWaits(ctx context.Context, item Item, instanceID string) (w waiting, err error) {
	if w.titleLevel, err = r.Library.TitleLevelRequests(ctx); err != nil {
		return w, err
	}
	var queue []schemas.QueuedRequest
	if w.titleLevel && instanceID != "" {
		queue, err = r.Library.TitleRequests(ctx, instanceID)
	} else {
		queue, err = r.Library.ItemRequests(ctx, item.ID)
	}
	w.first, w.any = schemas.FirstFilledBy(queue, item.ID, instanceID, w.titleLevel)
	return w, err
}

// send says in the commit where the item goes: to whoever waits for it, else home.
func (r *Returns) send(ctx context.Context, in CheckedIn, w waiting, commit *schemas.CheckIn) error {
	commit.TitleLevel = w.titleLevel
	if w.any {
		return r.serve(ctx, w.first, commit)
	}
	commit.ItemStatus = statusAvailable
	if !in.Location.serves(commit.ServicePointID) {
		commit.ItemStatus = statusInTransit
		commit.InTransitDestinationServicePointID = in.Location.PrimaryServicePoint
	}
	return nil
}

// serve sets the item aside for a request: on the hold shelf here, on its way to
// the pickup service point, or ready to be brought.
func (r *Returns) serve(ctx context.Context, first schemas.QueuedRequest, commit *schemas.CheckIn) error {
	commit.RequestID = first.ID
	switch {
	case first.FulfillmentPreference == delivery:
		commit.ItemStatus, commit.RequestStatus = statusAwaitingDelivery, schemas.RequestAwaitingDelivery
	case first.PickupServicePointID == "":
		return fault.Validation(fault.Detail{
			Message:    "Failed to check in item due to the highest priority request missing a pickup service point",
			Parameters: []fault.Parameter{{Key: "pickupServicePointId"}},
		})
	case !strings.EqualFold(first.PickupServicePointID, commit.ServicePointID):
		commit.ItemStatus, commit.RequestStatus = statusInTransit, schemas.RequestInTransit
		commit.InTransitDestinationServicePointID = first.PickupServicePointID
	default:
		commit.ItemStatus, commit.RequestStatus = statusAwaitingPickup, schemas.RequestAwaitingPickup
		return r.keepUntil(ctx, first, commit)
	}
	return nil
}

// keepUntil says how long the item waits on the shelf. An item that is checked in
// again while it waits does not wait longer for that.
func (r *Returns) keepUntil(ctx context.Context, first schemas.QueuedRequest, commit *schemas.CheckIn) error {
	if commit.HoldShelfExpirationDate = first.HoldShelfExpirationDate; first.HoldShelfExpirationDate != "" {
		return nil
	}
	point, _, err := fault.Found(r.Library.PickupPoint(ctx, first.PickupServicePointID))
	if err != nil {
		return fmt.Errorf("finding the pickup service point: %w", err)
	}
	if until, ends := point.HoldShelf.Until(time.Now().UTC()); ends {
		commit.HoldShelfExpirationDate = Instant{until}.text()
	}
	return nil
}
