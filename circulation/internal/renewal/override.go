package renewal

import (
	"context"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// OverrideBlocks names the blocks that staff lift for one renewal, and why. FOLIO's blocks of
// check-outs have no meaning here and are ignored.
type OverrideBlocks struct {
	PatronBlock *struct{} `json:"patronBlock"`
	// RenewalBlock lifts a recall, the number of renewals, and what else needs no due date of staff.
	RenewalBlock *struct{} `json:"renewalBlock"`
	// DueDateBlock lifts the same, and takes a due date where the policy gives none.
	DueDateBlock *library.DueDateOverride `json:"renewalDueDateRequiredBlock"`
	// Comment is required when a block is lifted.
	Comment string `json:"comment"`
}

// The blocks of renewals besides that of patrons.
var (
	renewalBlock = library.Block{Name: "renewalBlock", Permission: "circulation.override-renewal-block.post"}
	dueDateBlock = library.Block{Name: "renewalDueDateRequiredBlock", Permission: "circulation.override-renewal-block.post"}
)

// OverridePermissions returns every permission that an override of a renewal may take.
func OverridePermissions() []string {
	return []string{library.PatronBlock.Permission, renewalBlock.Permission}
}

func blockOf(o policy.Override) *library.Block {
	if o == policy.RenewalBlock {
		return &renewalBlock
	}
	return &dueDateBlock
}

func (o OverrideBlocks) liftsRenewal() bool { return o.RenewalBlock != nil || o.DueDateBlock != nil }
func (o OverrideBlocks) isAny() bool        { return o.PatronBlock != nil || o.liftsRenewal() }

// lifts reports whether the request lifts a block; nil is none. Either block of renewals lifts both.
func (o OverrideBlocks) lifts(b *library.Block) bool {
	switch b {
	case &library.PatronBlock:
		return o.PatronBlock != nil
	case &renewalBlock, &dueDateBlock:
		return o.liftsRenewal()
	}
	return false
}

// lift returns the refusals that the request does not lift, and first what the caller may not do.
// A block that is lifted needs its permission, needed or not.
func (o OverrideBlocks) lift(ctx context.Context, refused []refusal) fault.List {
	var found fault.List
	if o.PatronBlock != nil {
		found = append(found, library.PatronBlock.CheckPermission(ctx)...)
	}
	if o.RenewalBlock != nil {
		found = append(found, renewalBlock.CheckPermission(ctx)...)
	}
	if o.DueDateBlock != nil {
		found = append(found, dueDateBlock.CheckPermission(ctx)...)
	}
	if len(found) == 0 && o.isAny() && strings.TrimSpace(o.Comment) == "" {
		found = append(found, fault.Refusal("OVERRIDE_RENEWAL_COMMENT_REQUIRED", "Override renewal request must have a comment", fault.Parameter{Key: "comment"}))
	}
	for _, r := range refused {
		if o.lifts(r.block) {
			continue
		}
		if r.block != nil {
			r.detail.OverridableBlock = r.block.Describe(ctx)
		}
		found = append(found, r.detail)
	}
	return found
}

// chooseDueDate returns the due date of staff, else that of the policy. It asks for a date of staff
// where the policy gives none, or none that is later.
func (o OverrideBlocks) chooseDueDate(ctx context.Context, terms policy.LoanPolicy, t policy.RenewalTerms) (time.Time, fault.List) {
	refuse := func(code, message string) fault.List {
		d := fault.Refusal(code, message, fault.Parameter{Key: "dueDate"})
		d.OverridableBlock = dueDateBlock.Describe(ctx)
		return fault.List{d}
	}
	if o.DueDateBlock != nil && !o.DueDateBlock.DueDate.IsZero() {
		due := o.DueDateBlock.DueDate.Time
		if !t.IsLater(due) {
			return due, refuse("RENEWAL_WOULD_NOT_CHANGE_DUE_DATE", "renewal would not change the due date")
		}
		return due, nil
	}
	t.HoldWaits, t.PatronExpires = false, time.Time{} // neither shortens what staff renew, as in FOLIO
	due, err := terms.RenewedDueDate(t)
	switch {
	case !terms.Renews(), err != nil:
		return time.Time{}, refuse("OVERRIDE_RENEWAL_DUE_DATE_REQUIRED", "New due date must be specified when due date calculation fails")
	case !t.IsLater(due):
		return due, refuse("OVERRIDE_RENEWAL_DUE_DATE_REQUIRED_WHEN_DUE_DATE_UNCHANGED",
			"New due date is required when renewal would not change the due date")
	}
	return due, nil
}

// describe returns what storage has to allow. It follows lift, so all blocks are lifted. A lost item that
// is renewed is with the patron.
func (o OverrideBlocks) describe(facts *library.Facts) *schemas.RenewalOverride {
	_, recalled := facts.FindRecall("")
	override := &schemas.RenewalOverride{Comment: o.Comment, Recalled: recalled}
	if isLost(facts.Item) {
		override.ItemStatus = library.StatusCheckedOut
	}
	return override
}
