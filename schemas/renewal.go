package schemas

import "encoding/json"

// Renewal is the body of POST /loan-storage/renewals (ours): an open loan gets a
// later due date, provided that it is still as the caller judged it.
type Renewal struct {
	LoanID string `json:"loanId"`
	// ItemID is the loan's item and ItemVersion the _version that was judged.
	ItemID      string `json:"itemId"`
	ItemVersion int    `json:"itemVersion"`
	// JudgedDueDate and JudgedRenewalCount are those of the loan that was judged;
	// absent is a loan without a due date.
	JudgedDueDate      string `json:"judgedDueDate,omitempty"`
	JudgedRenewalCount int    `json:"judgedRenewalCount"`
	// DueDate is the new one, later than the old. RFC 3339.
	DueDate string `json:"dueDate"`
	// LoanPolicyID is the policy that allowed the renewal; the loan is under it
	// from now on.
	LoanPolicyID string `json:"loanPolicyId"`
}

// RenewalResult is the answer to it: the loan as stored.
type RenewalResult struct {
	Loan json.RawMessage `json:"loan"`
}
