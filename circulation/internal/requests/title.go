package requests

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// titleFacts are what a new request for any copy is judged by; zero for a request of an item.
type titleFacts struct {
	read             bool
	fitting          int          // copies whose status allows the type
	free             library.Item // a copy that is Available and that the policy allows to page; zero for none
	chosen           library.Item // the copy that a page takes, or whose loan a recall shortens; zero for none
	allowing         []policy.RequestPolicy
	owned            library.OpenLoan // a copy that the patron has; zero for none
	holdsAskPolicies bool             // holds of titles ask the policies
}

// isOfAnyCopy reports whether the request names a title and no copy.
func (w wish) isOfAnyCopy() bool {
	return w.record.RequestLevel == forTitle && w.record.ItemID == ""
}

// readTitle reads the copies of the title, and chooses the one that the request takes (mod-circulation,
// RequestFromRepresentationService and ItemForTlrService).
func (s *Service) readTitle(ctx context.Context, w wish) (t titleFacts, err error) {
	if !w.isOfAnyCopy() {
		return t, nil
	}
	user, found, err := fault.Found(s.Library.User(ctx, w.record.RequesterID))
	if err != nil || !found || user.PatronGroup == "" {
		return t, err // judge refuses such a patron
	}
	items, err := s.Library.TitleItems(ctx, w.record.InstanceID)
	if err != nil {
		return t, fmt.Errorf("listing the copies of the title: %w", err)
	}
	t.read = true
	loans, err := s.Library.OpenLoans(ctx, related.IDs(items, func(i library.Item) string { return i.ID }))
	if err != nil {
		return t, fmt.Errorf("reading the loans of the title: %w", err)
	}
	if at := slices.IndexFunc(loans, func(l library.OpenLoan) bool { return strings.EqualFold(l.UserID, user.ID) }); at >= 0 {
		t.owned = loans[at]
	}
	if t.holdsAskPolicies, err = s.Library.TitleHoldsObeyRules(ctx); err != nil {
		return t, err
	}
	var allowed []library.Item
	kind := w.record.RequestType
	for _, some := range groupItems(items, user.PatronGroup) {
		p, err := s.matchPolicy(ctx, some.criteria)
		if err != nil {
			return t, err
		}
		if at := slices.IndexFunc(some.items, func(i library.Item) bool { return i.Status.Name == library.StatusAvailable }); at >= 0 && t.free.ID == "" && p.AllowsType(schemas.RequestPage) {
			t.free = some.items[at]
		}
		fit := some.list(kind)
		t.fitting += len(fit)
		if (len(fit) > 0 || kind == schemas.RequestHold) && p.AllowsType(kind) { // FOLIO's holds ask for any status
			allowed, t.allowing = append(allowed, fit...), append(t.allowing, p)
		}
	}
	switch kind {
	case schemas.RequestPage:
		t.chosen = t.free
	case schemas.RequestRecall:
		t.chosen, err = s.chooseRecalled(ctx, w, allowed, loans)
	}
	return t, err
}

// chooseRecalled returns the copy that the fewest open recalls name, of these the one that is due
// first. Loans without a due date come behind the others, and a copy that is not on loan last.
func (s *Service) chooseRecalled(ctx context.Context, w wish, items []library.Item, loans []library.OpenLoan) (library.Item, error) {
	queue, err := readQueue(s.Keeper.TitleQueue(ctx, w.record.InstanceID))
	if err != nil {
		return library.Item{}, err
	}
	recalls := map[string]int{}
	for _, r := range queue {
		if r.RequestType == schemas.RequestRecall {
			recalls[strings.ToLower(r.ItemID)]++
		}
	}
	never := s.Now().AddDate(1000, 0, 0) // for loans without a due date
	slices.SortStableFunc(loans, func(a, b library.OpenLoan) int {
		return cmp.Or(recalls[strings.ToLower(a.ItemID)]-recalls[strings.ToLower(b.ItemID)],
			cmp.Or(a.DueDate.Time, never).Compare(cmp.Or(b.DueDate.Time, never)))
	})
	for _, loan := range loans {
		if at := slices.IndexFunc(items, func(i library.Item) bool { return strings.EqualFold(i.ID, loan.ItemID) }); at >= 0 {
			return items[at], nil
		}
	}
	if len(items) > 0 {
		return items[0], nil
	}
	return library.Item{}, nil
}

// judgeTitle refuses a request for any copy that no copy allows, or that the patron does not need.
// Holds ask the policies only if the tenant's setting says so, as in FOLIO.
func (w wish) judgeTitle(f facts) fault.List {
	t, kind := f.title, w.record.RequestType
	switch {
	case !t.read, f.instance.ID == "":
		return nil
	case t.owned.ItemID != "":
		return fault.List{fault.Refusal("REQUESTER_ALREADY_HAS_LOAN_FOR_ONE_OF_INSTANCES_ITEMS", "This requester already has a loan for one of the instance's items",
			newParameter("itemId", t.owned.ItemID), newParameter("userId", w.record.RequesterID), newParameter("loanId", t.owned.ID))}
	case kind == schemas.RequestPage:
		return nil // its copy is judged
	case t.free.ID != "":
		return fault.List{fault.Refusal("HOLD_AND_RECALL_TLR_NOT_ALLOWED_PAGEABLE_AVAILABLE_ITEM_FOUND", "Hold/Recall title level request not allowed: pageable available item found for instance",
			newParameter("itemId", t.free.ID), newParameter("instanceId", w.record.InstanceID))}
	case kind == schemas.RequestRecall && t.fitting == 0:
		return fault.List{fault.Refusal("NO_RECALLABLE_ITEM", "Request has no loan or recallable item", newParameter("loan", ""))}
	case kind == schemas.RequestRecall && len(t.allowing) == 0:
		return fault.List{newNotAllowed(kind)}
	case kind == schemas.RequestHold && t.holdsAskPolicies && len(t.allowing) == 0:
		return fault.List{fault.Refusal("REQUEST_NOT_ALLOWED_FOR_PATRON_TITLE_COMBINATION", "Hold requests are not allowed for this patron and title combination",
			newParameter("requesterId", w.record.RequesterID), newParameter("instanceId", w.record.InstanceID))}
	case kind == schemas.RequestHold && t.holdsAskPolicies && f.pickup.ID != "" && w.record.FulfillmentPreference == holdShelf &&
		!slices.ContainsFunc(t.allowing, func(p policy.RequestPolicy) bool { return p.AllowsServicePoint(kind, f.pickup.ID) }):
		return fault.List{newPlaceNotAllowed(f.pickup.ID, kind, t.allowing[0])}
	}
	return nil
}
