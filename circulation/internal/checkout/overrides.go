package checkout

import (
	"context"
	"strings"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// OverrideBlocks names the blocks that staff lift for one check-out, and why.
// FOLIO's blocks of renewals mean nothing here and are passed over.
type OverrideBlocks struct {
	PatronBlock          *struct{}            `json:"patronBlock"`
	ItemLimitBlock       *struct{}            `json:"itemLimitBlock"`
	ItemNotLoanableBlock *NotLoanableOverride `json:"itemNotLoanableBlock"`
	// Comment is required when a block is lifted.
	Comment string `json:"comment"`
}

// NotLoanableOverride lends what its policy does not lend, until a date that
// staff choose.
type NotLoanableOverride struct {
	DueDate Instant `json:"dueDate"`
}

// block is a check that staff may lift: its name in FOLIO's errors and requests,
// and the permission it takes.
type block struct{ name, permission string }

// The blocks of check-outs.
var (
	patronBlock      = block{"patronBlock", "circulation.override-patron-block.post"}
	itemLimitBlock   = block{"itemLimitBlock", "circulation.override-item-limit-block.post"}
	notLoanableBlock = block{"itemNotLoanableBlock", "circulation.override-item-not-loanable-block.post"}
)

// OverridePermissions returns every permission that an override may take.
func OverridePermissions() []string {
	return []string{patronBlock.permission, itemLimitBlock.permission, notLoanableBlock.permission}
}

// overridable is the block as an error names it, with the permission that the
// caller lacks for it.
func (b block) overridable(ctx context.Context) *fault.OverridableBlock {
	named := &fault.OverridableBlock{Name: b.name, MissingPermissions: []string{}}
	if !okapi.FromContext(ctx).HasPermission(b.permission) {
		named.MissingPermissions = append(named.MissingPermissions, b.permission)
	}
	return named
}

// names tells whether the request lifts the block.
func (o OverrideBlocks) names(b block) bool {
	switch b {
	case patronBlock:
		return o.PatronBlock != nil
	case itemLimitBlock:
		return o.ItemLimitBlock != nil
	case notLoanableBlock:
		return o.ItemNotLoanableBlock != nil
	}
	return false
}

// lift tells whether the request lifts the block, whose check is then not made at
// all, needed or not. The details are what the caller may not do.
func (p *plan) lift(ctx context.Context, b block) (lifted bool, wrong []fault.Detail) {
	if !p.req.OverrideBlocks.names(b) {
		return false, nil
	}
	if wrong := b.forbid(ctx); wrong != nil {
		return true, wrong
	}
	p.overridden = true
	return true, nil
}

// forbid returns the error of a caller without the permission for the block, nil
// for one who has it. The parameters name what asks for the permission.
func (b block) forbid(ctx context.Context, parameters ...fault.Parameter) []fault.Detail {
	named := b.overridable(ctx)
	if len(named.MissingPermissions) == 0 {
		return nil
	}
	d := detail("INSUFFICIENT_OVERRIDE_PERMISSIONS", "Insufficient override permissions", parameters...)
	d.OverridableBlock = named
	return []fault.Detail{d}
}

// checkOverride returns what an override lacks, once for all blocks it lifts. An
// override that is not allowed needs no more said.
func (p *plan) checkOverride() []fault.Detail {
	if p.overridden && strings.TrimSpace(p.req.OverrideBlocks.Comment) == "" {
		return []fault.Detail{{
			Message:    "Override should be performed with the comment specified",
			Parameters: []fault.Parameter{{Key: "comment"}},
		}}
	}
	return nil
}

// checkLoanable tells whether the policy lends at all, or staff do it.
func (p *plan) checkLoanable(ctx context.Context) []fault.Detail {
	lifted, wrong := p.lift(ctx, notLoanableBlock)
	switch {
	case len(wrong) > 0 || !lifted && p.policy.Loanable:
		return wrong
	case !lifted:
		d := detail("ITEM_NOT_LOANABLE", "Item is not loanable", append(p.aboutPolicy(), fault.Param("itemBarcode", p.req.ItemBarcode))...)
		d.OverridableBlock = notLoanableBlock.overridable(ctx)
		return []fault.Detail{d}
	}
	due := p.req.OverrideBlocks.ItemNotLoanableBlock.DueDate
	switch {
	case due.IsZero():
		return []fault.Detail{{
			Message:    "Override should be performed with due date specified",
			Parameters: []fault.Parameter{{Key: "dueDate"}},
		}}
	case !due.After(p.loanDate.Time):
		return []fault.Detail{detail("", "Due date should be later than loan date", fault.Param("dueDate", due.text()))}
	}
	return nil
}
