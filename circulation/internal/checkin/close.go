package checkin

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Close takes back the item of a loan that staff close by writing it. It is CheckIn with these
// differences, as in FOLIO: no status of the item excludes it, and an item without a request becomes
// Available everywhere. It completes c, which has item, service point, date and loan.
//
// Faults: LoanChanged if the loan is no longer the item's open one; those of CheckIn.
func (s *Service) Close(ctx context.Context, c schemas.CheckIn) error {
	facts, err := library.ReadFacts(ctx, s.Library, schemas.CheckOutSubjects{ItemID: c.ItemID, ServicePointID: c.ServicePointID})
	if err != nil {
		return fmt.Errorf("reading the item: %w", err)
	}
	if facts.Item.ID == "" {
		return library.NewNoItem(c.ItemID)
	}
	c.ID, c.ItemVersion, c.StaffMemberID = uuid.NewString(), facts.Item.Version, okapi.FromContext(ctx).UserID
	request, err := chooseDestination(&facts, &c)
	if err != nil {
		return err
	}
	if request == nil {
		c.ItemStatus, c.InTransitDestinationServicePointID = library.StatusAvailable, ""
	}
	_, err = s.sendCommit(ctx, c)
	return err
}
