package renewal

import (
	"context"
	"slices"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// judgeRenewal returns what to write, or everything that is wrong and not lifted by staff.
func (s *Service) judgeRenewal(ctx context.Context, w renewalRequest, facts *library.Facts, loan storedLoan) (schemas.Renewal, error) {
	now, item := s.Now(), facts.Item
	terms, err := s.findPolicy(ctx, facts)
	if err != nil {
		return schemas.Renewal{}, err
	}
	first, _ := facts.FindLent() // another one behind it is no hold that waits, as in FOLIO
	t := policy.RenewalTerms{
		Now: now.UTC(), DueDate: loan.DueDate.Time, Renewals: int(loan.RenewalCount), PatronExpires: facts.User.ExpirationDate.Time,
		HoldWaits: first.RequestType == schemas.RequestHold,
	}
	if t.Schedule, err = library.ReadSchedule(ctx, s.Library, terms.RenewalScheduleID, terms.ID); err != nil {
		return schemas.Renewal{}, err
	}
	due, byPolicy := terms.Renew(t)
	refused := slices.Concat(judgeUser(ctx, facts, now), judgeItem(facts))
	for _, r := range byPolicy {
		refused = append(refused, refusal{fault.Refusal(r.Code, r.Message, library.NamePolicy(terms)...), blockOf(r.Override)})
	}
	found := w.overrides.lift(ctx, refused)
	if len(found) == 0 && w.overrides.liftsRenewal() {
		due, found = w.overrides.chooseDueDate(ctx, terms, t)
	}
	if err := found.Err(); err != nil {
		return schemas.Renewal{}, err
	}
	renewal := schemas.Renewal{
		LoanID: loan.ID, ItemID: item.ID, ItemVersion: item.Version, JudgedRenewalCount: int(loan.RenewalCount),
		DueDate: library.Instant{Time: due}.Text(), LoanPolicyID: terms.ID,
	}
	if !loan.DueDate.IsZero() {
		renewal.JudgedDueDate = loan.DueDate.Format(time.RFC3339Nano)
	}
	if w.overrides.isAny() {
		renewal.Override = w.overrides.describe(facts)
	}
	return renewal, nil
}

// refusal is a reason against a renewal, with the block by which staff may lift it; nil for none.
type refusal struct {
	detail fault.Detail
	block  *library.Block
}

// judgeUser refuses a patron who is inactive or blocked from renewing.
func judgeUser(ctx context.Context, facts *library.Facts, now time.Time) []refusal {
	var refused []refusal
	switch {
	case facts.User.Active == nil:
		refused = append(refused, refusal{detail: fault.Refusal("USER_STATUS_CANNOT_BE_DETERMINED", "Cannot determine if user is active.",
			fault.Param("reason", "Cannot determine if user active."))})
	case facts.User.IsInactive(now):
		refused = append(refused, refusal{detail: fault.Refusal("USER_IS_INACTIVE_OR_EXPIRED", "Cannot renew loan when user is inactive or expired",
			fault.Param("reason", "User is inactive."))})
	}
	for _, d := range facts.ListBlocks(ctx, "renewing", now,
		func(b library.ManualBlock) bool { return b.Renewals }, func(b library.AutomatedBlock) bool { return b.BlockRenewals }) {
		refused = append(refused, refusal{d, &library.PatronBlock})
	}
	return refused
}

// judgeItem refuses an item that is recalled, lost or claimed returned.
func judgeItem(facts *library.Facts) []refusal {
	var refused []refusal
	if recall, exists := facts.FindRecall(""); exists {
		refused = append(refused, refusal{fault.Refusal("RENEWAL_BLOCKED_BY_RECALL",
			"items cannot be renewed when there is an active recall request", fault.Param("requestId", recall.ID)), &renewalBlock})
	}
	item := facts.Item
	codes := map[string]string{
		library.StatusDeclaredLost: "ITEM_DECLARED_LOST_NOT_RENEWABLE", library.StatusAgedToLost: "ITEM_AGED_TO_LOST_NOT_RENEWABLE",
		library.StatusClaimedReturned: "ITEM_CLAIMED_RETURNED_NOT_RENEWABLE",
	}
	if code, refuses := codes[item.Status.Name]; refuses {
		r := refusal{detail: fault.Refusal(code, "item is "+item.Status.Name, fault.Param("itemId", item.ID))}
		if isLost(item) {
			r.block = &renewalBlock
		}
		refused = append(refused, r)
	}
	return refused
}

func isLost(item library.Item) bool {
	return item.Status.Name == library.StatusDeclaredLost || item.Status.Name == library.StatusAgedToLost
}
