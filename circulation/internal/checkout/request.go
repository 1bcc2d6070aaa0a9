package checkout

import (
	"context"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// Request is the body of POST /circulation/check-out-by-barcode. Unknown properties are ignored, as
// FOLIO does.
type Request struct {
	ItemBarcode    string          `json:"itemBarcode"`
	UserBarcode    string          `json:"userBarcode"`
	ServicePointID string          `json:"servicePointId"`
	LoanDate       library.Instant `json:"loanDate"` // zero means now

	// LoanID is the loan's id, a UUID, for callers that repeat a check-out: the same one never
	// lends twice. Empty means a new id. It is not part of the body.
	LoanID string `json:"-"`

	// KeyLeaseID is the lease of the request's Idempotency-Key; empty if the request has no key. It is
	// not part of the body.
	KeyLeaseID string `json:"-"`

	// Admitted says that the caller has a place already: see Service.Admit. It is not part of the
	// body.
	Admitted bool `json:"-"`

	// ProxyUserBarcode is that of the patron who borrows for the other; optional.
	ProxyUserBarcode string `json:"proxyUserBarcode"`
	// ForceLoanPolicyID names the loan policy instead of the circulation rules. A policy without a
	// rule has no item limit, so it needs the permission to lift that.
	ForceLoanPolicyID string         `json:"forceLoanPolicyId"`
	OverrideBlocks    OverrideBlocks `json:"overrideBlocks"`

	dryRun bool // nothing will be lent, so no service point is needed
}

// check returns what is wrong with the request by itself.
func (r Request) check() fault.List {
	switch {
	case r.dryRun:
		return nil
	case strings.TrimSpace(r.ServicePointID) == "":
		return fault.List{fault.Refusal("", "Check out must be performed at a service point", fault.Parameter{Key: "servicePointId"})}
	}
	return library.CheckUUID("servicePointId", r.ServicePointID)
}

// OverrideBlocks names the blocks that staff lift for one check-out, and why. FOLIO's blocks of
// renewals have no meaning here and are ignored.
type OverrideBlocks struct {
	PatronBlock          *struct{}            `json:"patronBlock"`
	ItemLimitBlock       *struct{}            `json:"itemLimitBlock"`
	ItemNotLoanableBlock *NotLoanableOverride `json:"itemNotLoanableBlock"`
	// Comment is required when a block is lifted.
	Comment string `json:"comment"`
}

// NotLoanableOverride lends what its policy does not lend, until a date that staff choose.
type NotLoanableOverride struct {
	DueDate library.Instant `json:"dueDate"`
}

// block is a check that staff may lift, and whether a request lifts it.
type block struct {
	check    library.Block
	isLifted func(OverrideBlocks) bool
}

// The blocks of check-outs.
var (
	patronBlock    = block{library.PatronBlock, func(o OverrideBlocks) bool { return o.PatronBlock != nil }}
	itemLimitBlock = block{
		library.Block{Name: "itemLimitBlock", Permission: "circulation.override-item-limit-block.post"},
		func(o OverrideBlocks) bool { return o.ItemLimitBlock != nil },
	}
	notLoanableBlock = block{
		library.Block{Name: "itemNotLoanableBlock", Permission: "circulation.override-item-not-loanable-block.post"},
		func(o OverrideBlocks) bool { return o.ItemNotLoanableBlock != nil },
	}
)

// OverridePermissions returns every permission that an override may take.
func OverridePermissions() []string {
	return []string{patronBlock.check.Permission, itemLimitBlock.check.Permission, notLoanableBlock.check.Permission}
}

// liftBlock reports whether the request lifts the block. The block's check is then not made at all,
// needed or not. The details are what the caller may not do.
func (p *plan) liftBlock(ctx context.Context, b block) (lifted bool, found fault.List) {
	if !b.isLifted(p.req.OverrideBlocks) {
		return false, nil
	}
	if found := b.check.CheckPermission(ctx); found != nil {
		return true, found
	}
	p.overridden = true
	return true, nil
}

// checkOverride refuses an override without a comment, once for all blocks that it lifts. An
// override that is not allowed gets no second refusal.
func (p *plan) checkOverride() fault.List {
	if p.overridden && strings.TrimSpace(p.req.OverrideBlocks.Comment) == "" {
		return fault.List{fault.Refusal("", "Override should be performed with the comment specified", fault.Parameter{Key: "comment"})}
	}
	return nil
}

// checkLoanable refuses an item that its policy does not lend, unless staff lift that.
func (p *plan) checkLoanable(ctx context.Context) fault.List {
	lifted, found := p.liftBlock(ctx, notLoanableBlock)
	switch {
	case len(found) > 0 || !lifted && p.policy.Loanable:
		return found
	case !lifted:
		d := fault.Refusal("ITEM_NOT_LOANABLE", "Item is not loanable",
			append(library.NamePolicy(p.policy), fault.Param("itemBarcode", p.req.ItemBarcode))...)
		d.OverridableBlock = notLoanableBlock.check.Describe(ctx)
		return fault.List{d}
	}
	due := p.req.OverrideBlocks.ItemNotLoanableBlock.DueDate
	switch {
	case due.IsZero():
		return fault.List{fault.Refusal("", "Override should be performed with due date specified", fault.Parameter{Key: "dueDate"})}
	case !due.After(p.loanDate.Time):
		return fault.List{fault.Refusal("", "Due date should be later than loan date", fault.Param("dueDate", due.Text()))}
	}
	return nil
}
