package requests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Codes of refusals that are ours and stand in several places.
const (
	codeInstanceUnknown = "INSTANCE_NOT_FOUND"
	codeOtherInstance   = "ITEM_OF_ANOTHER_INSTANCE"
	codeTitlesDisabled  = "TITLE_LEVEL_REQUESTS_DISABLED"
	codeTitlesEnabled   = "TITLE_LEVEL_REQUESTS_ENABLED"
)

// listStatuses returns the item statuses that a type of request allows (mod-circulation,
// RequestTypeItemStatusWhiteList).
func listStatuses(requestType string) []string {
	onLoanOrMoving := []string{"Checked out", "Awaiting pickup", "Awaiting delivery", "In transit", "Paged", "On order", "In process", "Restricted"}
	switch requestType {
	case schemas.RequestPage:
		return []string{library.StatusAvailable, "Restricted"}
	case schemas.RequestHold:
		return append(onLoanOrMoving, "Missing")
	}
	return onLoanOrMoving
}

// judge returns everything that is wrong, in FOLIO's order.
func (w wish) judge(ctx context.Context, f facts, now time.Time) fault.List {
	wrong := w.judgeTitle(f)
	if len(wrong) == 0 {
		wrong = append(w.judgeItem(f), w.judgePolicy(f)...)
	}
	return slices.Concat(w.judgeProxy(f, now), w.judgePickup(f), w.judgeActive(f, now), w.record.RefuseRepeated(f.records.Requests, f.records.TitleLevel),
		w.judgeBlocks(ctx, f, now), wrong)
}

// judgeProxy refuses a proxy who may not act for the patron.
func (w wish) judgeProxy(f facts, now time.Time) fault.List {
	proxy := newParameter("proxyUserId", w.proxyID)
	switch {
	case w.proxyID == "":
		return nil
	case strings.EqualFold(w.proxyID, w.record.RequesterID):
		return fault.List{fault.Refusal("USER_CANNOT_BE_PROXY_FOR_THEMSELVES", "User cannot be proxy for themselves", proxy)}
	case !slices.ContainsFunc(f.proxyRelations, func(r library.ProxyRelation) bool { return r.IsActive(now) }):
		return fault.List{fault.Refusal(library.CodeProxyInvalid, "proxyUserId is not valid", proxy)}
	}
	return nil
}

// judgeUser refuses a patron who does not exist, or has no group.
func (w wish) judgeUser(f facts) fault.List {
	switch {
	case f.records.User.ID == "":
		return fault.List{fault.Refusal("USER_NOT_FOUND", "A valid user and patron group are required. User is null", newParameter("userId", w.record.RequesterID))}
	case f.records.User.PatronGroup == "":
		return fault.List{fault.Refusal("USER_HAS_NO_PATRON_GROUP", "A valid patron group is required. PatronGroup ID is null", newParameter("PatronGroupId", ""))}
	}
	return nil
}

// judgeActive is judgeUser that refuses an inactive patron too.
func (w wish) judgeActive(f facts, now time.Time) fault.List {
	if wrong := w.judgeUser(f); wrong != nil || !f.records.User.IsInactive(now) {
		return wrong
	}
	return fault.List{fault.Refusal("USER_IS_INACTIVE_OR_EXPIRED", "Inactive users cannot make requests",
		newParameter("requesterId", w.record.RequesterID), newParameter("itemId", w.record.ItemID))}
}

// judgeBlocks refuses a patron who is blocked from requesting, unless staff lift that.
func (w wish) judgeBlocks(ctx context.Context, f facts, now time.Time) fault.List {
	if w.unblocked {
		return library.PatronBlock.CheckPermission(ctx)
	}
	return f.records.ListBlocks(ctx, "requesting", now,
		func(b library.ManualBlock) bool { return b.Requests }, func(b library.AutomatedBlock) bool { return b.BlockRequests })
}

func (w wish) judgeItem(f facts) fault.List {
	item := f.records.Item
	switch {
	case f.instance.ID == "":
		return fault.List{fault.Refusal(codeInstanceUnknown, "Instance does not exist", newParameter("instanceId", w.record.InstanceID))}
	case w.record.ItemID != "" && item.ID == "":
		return fault.List{fault.Refusal(library.CodeItemUnknown, "Item does not exist", newParameter("itemId", w.record.ItemID))}
	case w.record.RequestType == schemas.RequestPage && item.ID == "":
		return fault.List{fault.Refusal("NO_AVAILABLE_ITEM", "Cannot create page TLR for this instance ID - no available items found", newParameter("instanceId", w.record.InstanceID))}
	case item.ID == "":
		return nil
	case !strings.EqualFold(f.records.Holdings.InstanceID, w.record.InstanceID):
		return fault.List{fault.Refusal(codeOtherInstance, "The item is not one of the instance", newParameter("itemId", w.record.ItemID), newParameter("instanceId", w.record.InstanceID))}
	case f.loan.ID != "" && strings.EqualFold(f.loan.UserID, w.record.RequesterID):
		return fault.List{fault.Refusal("REQUESTER_ALREADY_HAS_THIS_ITEM_ON_LOAN", "This requester already has this item on loan",
			newParameter("itemId", item.ID), newParameter("userId", w.record.RequesterID), newParameter("loanId", f.loan.ID))}
	}
	return nil
}

// judgePolicy refuses a type of request that neither the item's status nor the request policy
// allows, and a pickup service point that the policy leaves out.
func (w wish) judgePolicy(f facts) fault.List {
	asked, kind := f.policy.ID != "", w.record.RequestType
	switch {
	case f.records.Item.ID == "":
		return nil
	case !slices.Contains(listStatuses(kind), f.records.Item.Status.Name), asked && !f.policy.AllowsType(kind):
		return fault.List{newNotAllowed(kind)}
	case f.pickup.ID != "" && w.record.FulfillmentPreference == holdShelf && !f.policy.AllowsServicePoint(kind, f.pickup.ID):
		return fault.List{newPlaceNotAllowed(f.pickup.ID, kind, f.policy)}
	}
	return nil
}

func newNotAllowed(kind string) fault.Detail {
	return fault.Refusal("REQUEST_NOT_ALLOWED_FOR_PATRON_ITEM_COMBINATION",
		fmt.Sprintf("%s requests are not allowed for this patron and item combination", kind), newParameter("requestType", kind))
}

func newPlaceNotAllowed(pickupID, kind string, p policy.RequestPolicy) fault.Detail {
	return fault.Refusal("REQUEST_PICKUP_SERVICE_POINT_IS_NOT_ALLOWED", "One or more Pickup locations are no longer available",
		newParameter("pickupServicePointId", pickupID), newParameter("requestType", kind), newParameter("requestPolicyId", p.ID))
}

func (w wish) judgePickup(f facts) fault.List {
	switch {
	case w.record.PickupServicePointID == "" && w.record.FulfillmentPreference == holdShelf:
		return fault.List{fault.Refusal("HOLD_SHELF_REQUESTS_REQUIRE_PICKUP_SERVICE_POINT",
			"Hold shelf fulfillment requests require a Pickup service point", newParameter("id", w.record.ID))}
	case w.record.PickupServicePointID == "":
		return nil
	case f.pickup.ID == "":
		return fault.List{fault.Refusal("SERVICE_POINT_NOT_FOUND", "Pickup service point does not exist", newParameter("pickupServicePointId", w.record.PickupServicePointID))}
	case !f.pickup.PickupLocation:
		return fault.List{fault.Refusal("SERVICE_POINT_IS_NOT_PICKUP_LOCATION", "Service point is not a pickup location",
			newParameter("pickupServicePointId", w.record.PickupServicePointID))}
	}
	return nil
}
