package checkout

import "checkoutlock/schemas/fault"

// The causes of refusals that FOLIO has no code for and whose messages name a
// title, a barcode or an id. The history has them as the code, so that such
// refusals count as one cause; they are not answered.
const (
	// CauseItemNotFound is FOLIO's code for the same at a check-in.
	CauseItemNotFound   = "ITEM_BARCODE_NOT_FOUND"
	CauseItemStatus     = "ITEM_STATUS"
	CauseItemRequested  = "ITEM_REQUESTED"        // by another patron
	CausePolicyNotFound = "LOAN_POLICY_NOT_FOUND" // that the request names
)

// uncoded is the detail of such a refusal.
func uncoded(cause, message string, parameters ...fault.Parameter) fault.Detail {
	return fault.Detail{Message: message, Cause: cause, Parameters: parameters}
}
