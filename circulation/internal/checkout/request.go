package checkout

import (
	"strings"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Request is the body of POST /circulation/check-out-by-barcode. Unknown
// properties are ignored, as FOLIO does.
type Request struct {
	ItemBarcode    string  `json:"itemBarcode"`
	UserBarcode    string  `json:"userBarcode"`
	ServicePointID string  `json:"servicePointId"`
	LoanDate       Instant `json:"loanDate"` // zero means now

	// LoanID is the loan's id, a UUID, for callers that repeat a check-out: the
	// same one never lends twice. Empty means a new id. It is not part of the body.
	LoanID string `json:"-"`

	// ClaimID is the claim on the Idempotency-Key that the request came with; empty
	// means that it came with none. It is not part of the body.
	ClaimID string `json:"-"`

	// Admitted says that the caller has a place already: see Service.Admit. It is not
	// part of the body.
	Admitted bool `json:"-"`

	// ProxyUserBarcode is of the patron who borrows for the other; empty for nobody.
	ProxyUserBarcode string `json:"proxyUserBarcode"`
	// ForceLoanPolicyID names the loan policy instead of the circulation rules; no
	// rule means no item limit, so it needs the permission to lift that.
	ForceLoanPolicyID string         `json:"forceLoanPolicyId"`
	OverrideBlocks    OverrideBlocks `json:"overrideBlocks"`

	dryRun bool // nothing will be lent, so no service point is needed
}

// maxBarcode is how many characters the longest barcode has that storage keeps.
const maxBarcode = 600

// check returns what is wrong with the request by itself.
func (r Request) check() []fault.Detail {
	var found []fault.Detail
	switch {
	case r.dryRun:
	case strings.TrimSpace(r.ServicePointID) == "":
		found = append(found, fault.Detail{
			Message:    "Check out must be performed at a service point",
			Parameters: []fault.Parameter{{Key: "servicePointId"}},
		})
	case !schemas.IsUUID(r.ServicePointID):
		found = append(found, detail("", "servicePointId must be a UUID", fault.Param("servicePointId", r.ServicePointID)))
	}
	return found
}

// PlausibleBarcode tells whether a record can have this barcode at all, so that a
// request for any other need not reach storage.
func PlausibleBarcode(barcode string) bool {
	return barcode != "" && utf8.RuneCountInString(barcode) <= maxBarcode && !strings.ContainsRune(barcode, 0)
}

func detail(code, message string, parameters ...fault.Parameter) fault.Detail {
	return fault.Detail{Message: message, Code: code, Parameters: parameters}
}
