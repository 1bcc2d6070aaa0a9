package checkin

import (
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// delivery is the fulfillmentPreference of a request whose item is brought to the patron.
const delivery = "Delivery"

// chooseDestination completes the commit with where the item goes: to the first request that it can
// fill, which it returns, else home.
func chooseDestination(facts *library.Facts, commit *schemas.CheckIn) (*schemas.QueuedRequest, error) {
	commit.TitleLevel = facts.TitleLevel
	if first, exists := schemas.FirstFilledBy(facts.Requests, facts.Item.ID, facts.Holdings.InstanceID, facts.TitleLevel); exists {
		err := fillRequest(&first, facts.Slip, commit)
		return &first, err
	}
	commit.ItemStatus = library.StatusAvailable
	if home := facts.Location; !home.IsServedBy(commit.ServicePointID) {
		commit.ItemStatus = library.StatusInTransit
		commit.InTransitDestinationServicePointID = home.PrimaryServicePoint
	}
	return nil, nil //nolint:nilnil // no request waits
}

// fillRequest sets the item aside for a request: on the hold shelf here, on its way to the pickup
// service point, or ready to be brought.
func fillRequest(first *schemas.QueuedRequest, slip library.Slip, commit *schemas.CheckIn) error {
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
		setExpiration(first, slip, commit)
	}
	return nil
}

// setExpiration says how long the item waits on the shelf. A repeated check-in of an item that
// waits does not extend that.
func setExpiration(first *schemas.QueuedRequest, slip library.Slip, commit *schemas.CheckIn) {
	if first.HoldShelfExpirationDate == "" {
		if until, ends := slip.FindServicePoint(first.PickupServicePointID).HoldShelf.Until(time.Now().UTC()); ends {
			first.HoldShelfExpirationDate = library.Instant{Time: until}.Text()
		}
	}
	commit.HoldShelfExpirationDate = first.HoldShelfExpirationDate
}
