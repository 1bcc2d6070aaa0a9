package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	page      = "Page"
	holdShelf = "Hold Shelf"
)

// facts are what a request is judged by.
type facts struct {
	user      library.User
	userFound bool
	item      library.Item // the requested one, or the copy that a page for a title takes
	itemFound bool
	holdings  library.Holdings
	instance  library.Instance
	titled    bool // the instance was found
	pickup    library.ServicePoint
	pickable  bool // the pickup service point was found
	borrows   bool // the patron has the item
}

// readFacts reads what the request is judged by, in parallel calls.
func (s *Service) readFacts(ctx context.Context, w wish) (f facts, err error) {
	g, ctx := errgroup.WithContext(ctx)
	library.FindInto(ctx, g, &f.user, &f.userFound, w.record.RequesterID, s.Library.User)
	library.FindInto(ctx, g, &f.instance, &f.titled, w.record.InstanceID, s.Library.Instance)
	library.FindInto(ctx, g, &f.pickup, &f.pickable, w.record.PickupServicePointID, s.Library.PickupPoint)
	g.Go(func() error { return s.readItem(ctx, w, &f) })
	if err := g.Wait(); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	return f, nil
}

// readItem reads the item and what belongs to it.
func (s *Service) readItem(ctx context.Context, w wish, f *facts) (err error) {
	switch {
	case w.record.ItemID != "":
		f.item, f.itemFound, err = fault.Found(s.Library.Item(ctx, w.record.ItemID))
	case w.record.RequestType == page:
		f.item, f.itemFound, err = fault.Found(s.Library.FreeCopy(ctx, w.record.InstanceID))
	}
	if err != nil || !f.itemFound {
		return err
	}
	if f.holdings, _, err = fault.Found(s.Library.Holdings(ctx, f.item.HoldingsRecordID)); err != nil {
		return err
	}
	f.borrows, err = s.Library.Borrows(ctx, w.record.RequesterID, f.item.ID)
	return err
}

// listStatuses returns the item statuses that a type of request allows (mod-circulation,
// RequestTypeItemStatusWhiteList).
func listStatuses(requestType string) []string {
	onLoanOrMoving := []string{"Checked out", "Awaiting pickup", "Awaiting delivery", "In transit", "Paged", "On order", "In process", "Restricted"}
	switch requestType {
	case page:
		return []string{library.StatusAvailable, "Restricted"}
	case "Hold":
		return append(onLoanOrMoving, "Missing")
	}
	return onLoanOrMoving
}

// judge returns everything that is wrong.
func (w wish) judge(f facts) fault.List {
	return slices.Concat(w.judgeUser(f), w.judgeItem(f), w.judgePickup(f))
}

func (w wish) judgeUser(f facts) fault.List {
	switch {
	case !f.userFound:
		return fault.List{fault.Refusal("", "A valid user and patron group are required. User is null", newParameter("userId", w.record.RequesterID))}
	case f.user.PatronGroup == "":
		return fault.List{fault.Refusal("", "A valid patron group is required. PatronGroup ID is null", newParameter("PatronGroupId", ""))}
	case f.user.IsInactive(time.Now()):
		return fault.List{fault.Refusal("", "Inactive users cannot make requests", newParameter("requesterId", w.record.RequesterID))}
	}
	return nil
}

func (w wish) judgeItem(f facts) fault.List {
	switch {
	case !f.titled:
		return fault.List{fault.Refusal("", "Instance does not exist", newParameter("instanceId", w.record.InstanceID))}
	case w.record.ItemID != "" && !f.itemFound:
		return fault.List{fault.Refusal("", "Item does not exist", newParameter("itemId", w.record.ItemID))}
	case w.record.RequestType == page && !f.itemFound:
		return fault.List{fault.Refusal("", "Cannot create page TLR for this instance ID - no available items found", newParameter("instanceId", w.record.InstanceID))}
	case !f.itemFound:
		return nil
	case !strings.EqualFold(f.holdings.InstanceID, w.record.InstanceID):
		return fault.List{fault.Refusal("", "The item is not one of the instance", newParameter("itemId", w.record.ItemID), newParameter("instanceId", w.record.InstanceID))}
	case f.borrows:
		return fault.List{fault.Refusal("", "This requester already has this item on loan", newParameter("itemId", f.item.ID), newParameter("userId", w.record.RequesterID))}
	case !slices.Contains(listStatuses(w.record.RequestType), f.item.Status.Name):
		return fault.List{fault.Refusal("", fmt.Sprintf("%s requests are not allowed for %s item status combination", w.record.RequestType, f.item.Status.Name),
			newParameter(w.record.RequestType, f.item.ID))}
	}
	return nil
}

func (w wish) judgePickup(f facts) fault.List {
	switch {
	case w.record.PickupServicePointID == "" && w.record.FulfillmentPreference == holdShelf:
		return fault.List{fault.Refusal("HOLD_SHELF_REQUESTS_REQUIRE_PICKUP_SERVICE_POINT",
			"Hold shelf fulfillment requests require a Pickup service point", newParameter("id", w.record.ID))}
	case w.record.PickupServicePointID == "":
		return nil
	case !f.pickable:
		return fault.List{fault.Refusal("", "Pickup service point does not exist", newParameter("pickupServicePointId", w.record.PickupServicePointID))}
	case !f.pickup.PickupLocation:
		return fault.List{fault.Refusal("", "Service point is not a pickup location", newParameter("pickupServicePointId", w.record.PickupServicePointID))}
	}
	return nil
}

// makePlacement returns the request as it is stored. It has copies of the fields by which lists of
// requests are shown and searched.
func (w wish) makePlacement(f facts) (schemas.Placement, error) {
	doc := maps.Clone(w.doc)
	doc["requester"] = copyPatron(f.user)
	doc["instance"] = map[string]any{"title": f.instance.Title}
	p := schemas.Placement{TitleLevel: w.titleLevel}
	delete(doc, "holdingsRecordId")
	if f.itemFound {
		doc["itemId"], doc["holdingsRecordId"] = f.item.ID, f.item.HoldingsRecordID
		doc["item"] = map[string]any{"barcode": f.item.Barcode}
		p.ItemVersion = &f.item.Version
	}
	var err error
	if p.Request, err = json.Marshal(doc); err != nil {
		return schemas.Placement{}, fmt.Errorf("writing the request: %w", err)
	}
	return p, nil
}

// copyPatron returns the fields of a patron that a request has copies of.
func copyPatron(u library.User) map[string]any {
	copied := map[string]any{"lastName": u.Personal.LastName, "firstName": u.Personal.FirstName, "barcode": u.Barcode}
	maps.DeleteFunc(copied, func(_ string, v any) bool { return v == "" })
	return copied
}
