package schemas

import "encoding/json"

// LoanChange is the body of POST /loan-storage/loans/{id}/changes (ours): what staff do to a loan
// and its item, in one transaction.
type LoanChange struct {
	// ID is chosen by the caller: a repeat with the same id changes nothing, for a day.
	ID string `json:"id"`
	// Action becomes the loan's action, and decides what else changes.
	Action  string `json:"action"`
	Comment string `json:"comment,omitempty"`
	// Date is the new due date, or when the item was claimed returned or declared lost; RFC 3339. A
	// declared loss without a date happens now.
	Date string `json:"date,omitempty"`
}

// LoanReplacement is the body of POST /loan-storage/loans/{id}/replacements (ours): a loan that staff
// write over the stored one. It neither closes nor opens the loan.
type LoanReplacement struct {
	// ID means what it does in LoanChange.
	ID   string          `json:"id"`
	Loan json.RawMessage `json:"loan"`
}

// The actions of LoanChange (mod-circulation, LoanAction).
const (
	PatronInfoAdded = "patronInfoAdded"
	StaffInfoAdded  = "staffInfoAdded"
	DueDateChanged  = "dueDateChanged"
	ClaimedReturned = "claimedReturned"
	DeclaredLost    = "declaredLost"
	MarkedMissing   = "markedMissing" // closes the loan
)
