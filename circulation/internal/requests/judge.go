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
	available = "Available"
	holdShelf = "Hold Shelf"
)

// facts are what a request is judged by.
type facts struct {
	user      library.User
	userFound bool
	item      library.Item // the one that is asked for, or that a page for a title takes
	itemFound bool
	holdings  library.Holdings
	instance  library.Instance
	titled    bool // the instance was found
	pickup    library.PickupPoint
	pickable  bool // the pickup service point was found
	borrows   bool // the patron has the item
}

func (s *Service) gather(ctx context.Context, w wish) (f facts, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		f.user, f.userFound, err = fault.Found(s.Library.User(ctx, w.RequesterID))
		return err
	})
	g.Go(func() (err error) {
		f.instance, f.titled, err = fault.Found(s.Library.Instance(ctx, w.InstanceID))
		return err
	})
	if w.PickupServicePointID != "" {
		g.Go(func() (err error) {
			f.pickup, f.pickable, err = fault.Found(s.Library.PickupPoint(ctx, w.PickupServicePointID))
			return err
		})
	}
	g.Go(func() error { return s.gatherItem(ctx, w, &f) })
	if err := g.Wait(); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	return f, nil
}

func (s *Service) gatherItem(ctx context.Context, w wish, f *facts) (err error) {
	switch {
	case w.ItemID != "":
		f.item, f.itemFound, err = fault.Found(s.Library.Item(ctx, w.ItemID))
	case w.RequestType == page:
		f.item, f.itemFound, err = fault.Found(s.Library.FreeCopy(ctx, w.InstanceID))
	}
	if err != nil || !f.itemFound {
		return err
	}
	if f.holdings, _, err = fault.Found(s.Library.Holdings(ctx, f.item.HoldingsRecordID)); err != nil {
		return err
	}
	f.borrows, err = s.Library.Borrows(ctx, w.RequesterID, f.item.ID)
	return err
}

// requestable are the item statuses of each type of request (mod-circulation,
// RequestTypeItemStatusWhiteList).
func requestable(requestType string) []string {
	onItsWay := []string{"Checked out", "Awaiting pickup", "Awaiting delivery", "In transit", "Paged", "On order", "In process", "Restricted"}
	switch requestType {
	case page:
		return []string{available, "Restricted"}
	case "Hold":
		return append(onItsWay, "Missing")
	}
	return onItsWay
}

// judge lists everything that is wrong.
func (w wish) judge(f facts) fault.List {
	return slices.Concat(w.judgeUser(f), w.judgeItem(f), w.judgePickup(f))
}

func (w wish) judgeUser(f facts) fault.List {
	switch {
	case !f.userFound:
		return fault.List{fault.Refusal("", "A valid user and patron group are required. User is null", value("userId", w.RequesterID))}
	case f.user.PatronGroup == "":
		return fault.List{fault.Refusal("", "A valid patron group is required. PatronGroup ID is null", value("PatronGroupId", ""))}
	case f.user.IsInactive(time.Now()):
		return fault.List{fault.Refusal("", "Inactive users cannot make requests", value("requesterId", w.RequesterID))}
	}
	return nil
}

func (w wish) judgeItem(f facts) fault.List {
	switch {
	case !f.titled:
		return fault.List{fault.Refusal("", "Instance does not exist", value("instanceId", w.InstanceID))}
	case w.ItemID != "" && !f.itemFound:
		return fault.List{fault.Refusal("", "Item does not exist", value("itemId", w.ItemID))}
	case w.RequestType == page && !f.itemFound:
		return fault.List{fault.Refusal("", "Cannot create page TLR for this instance ID - no available items found", value("instanceId", w.InstanceID))}
	case !f.itemFound:
		return nil
	case !strings.EqualFold(f.holdings.InstanceID, w.InstanceID):
		return fault.List{fault.Refusal("", "The item is not one of the instance", value("itemId", w.ItemID), value("instanceId", w.InstanceID))}
	case f.borrows:
		return fault.List{fault.Refusal("", "This requester already has this item on loan", value("itemId", f.item.ID), value("userId", w.RequesterID))}
	case !slices.Contains(requestable(w.RequestType), f.item.Status.Name):
		return fault.List{fault.Refusal("", fmt.Sprintf("%s requests are not allowed for %s item status combination", w.RequestType, f.item.Status.Name),
			value(w.RequestType, f.item.ID))}
	}
	return nil
}

func (w wish) judgePickup(f facts) fault.List {
	switch {
	case w.PickupServicePointID == "" && w.FulfillmentPreference == holdShelf:
		return fault.List{fault.Refusal("HOLD_SHELF_REQUESTS_REQUIRE_PICKUP_SERVICE_POINT",
			"Hold shelf fulfillment requests require a Pickup service point", value("id", w.ID))}
	case w.PickupServicePointID == "":
		return nil
	case !f.pickable:
		return fault.List{fault.Refusal("", "Pickup service point does not exist", value("pickupServicePointId", w.PickupServicePointID))}
	case !f.pickup.PickupLocation:
		return fault.List{fault.Refusal("", "Service point is not a pickup location", value("pickupServicePointId", w.PickupServicePointID))}
	}
	return nil
}

// placement is the request as it is stored, with copies of what lists of requests
// show and are searched by.
func (w wish) placement(f facts) (schemas.Placement, error) {
	doc := maps.Clone(w.doc)
	doc["requester"] = person(f.user)
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

func person(u library.User) map[string]any {
	copied := map[string]any{"lastName": u.Personal.LastName, "firstName": u.Personal.FirstName, "barcode": u.Barcode}
	maps.DeleteFunc(copied, func(_ string, v any) bool { return v == "" })
	return copied
}
