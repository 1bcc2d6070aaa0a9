package checkout

import (
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// Request is the body of POST /circulation/check-out-by-barcode. Unknown properties are ignored, as
// FOLIO does.
type Request struct {
	ItemBarcode    string          `json:"itemBarcode"`
	UserBarcode    string          `json:"userBarcode"`
	ServicePointID string          `json:"servicePointId"`
	LoanDate       library.Instant `json:"loanDate"` // zero means now

	// ProxyUserBarcode is that of the patron who borrows for the other; optional.
	ProxyUserBarcode string `json:"proxyUserBarcode"`
	// ForceLoanPolicyID names the loan policy instead of the circulation rules. A policy without a
	// rule has no item limit, so it needs the permission to lift that.
	ForceLoanPolicyID string         `json:"forceLoanPolicyId"`
	OverrideBlocks    OverrideBlocks `json:"overrideBlocks"`

	library.Sent `json:"-"`
}

func (r Request) subjects() schemas.CheckOutSubjects {
	return schemas.CheckOutSubjects{UserBarcode: r.UserBarcode, ProxyUserBarcode: r.ProxyUserBarcode, ItemBarcode: r.ItemBarcode}
}

// KeyLease is what a check-out with an Idempotency-Key has besides its body. The zero KeyLease is
// that of a check-out without a key.
type KeyLease struct {
	ID     string // storage refuses the commit once another request has the lease
	LoanID string // the id that the loan gets, a UUID: the same one never lends twice
	// Taken means that another request had the lease before. The loan may exist. If not, no other request
	// will make it.
	Taken bool
}

// OverrideBlocks names the blocks that staff lift for one check-out, and why. FOLIO's blocks of
// renewals have no meaning here and are ignored.
type OverrideBlocks struct {
	PatronBlock          *struct{}                `json:"patronBlock"`
	ItemLimitBlock       *struct{}                `json:"itemLimitBlock"`
	ItemNotLoanableBlock *library.DueDateOverride `json:"itemNotLoanableBlock"`
	// Comment is required when a block is lifted.
	Comment string `json:"comment"`
}

// The blocks of check-outs besides that of patrons.
var (
	itemLimitBlock   = library.Block{Name: "itemLimitBlock", Permission: "circulation.override-item-limit-block.post"}
	notLoanableBlock = library.Block{Name: "itemNotLoanableBlock", Permission: "circulation.override-item-not-loanable-block.post"}
)

// OverridePermissions returns every permission that an override may take.
func OverridePermissions() []string {
	return []string{library.PatronBlock.Permission, itemLimitBlock.Permission, notLoanableBlock.Permission}
}
