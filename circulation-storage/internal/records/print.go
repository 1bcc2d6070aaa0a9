package records

import (
	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

// The JSON Schemas of what ParsePrint, ParsePrintedRequests and the anonymization of loans read.
const (
	PrintSchema           = "print-events"
	PrintedRequestsSchema = "print-events-status"
	AnonymizedLoansSchema = "anonymized-loans"
)

// Print is one print of slips of requests.
type Print struct {
	RequestIDs    []string `json:"requestIds"`
	RequesterID   string   `json:"requesterId"`
	RequesterName string   `json:"requesterName"`
	// At is in FOLIO's form once it is parsed.
	At string `json:"printEventDate"`
}

// LastPrint is the last print of a request's slip, and how many there were.
type LastPrint struct {
	RequestID     string `json:"requestId"`
	RequesterID   string `json:"requesterId"`
	RequesterName string `json:"requesterName"`
	Count         int    `json:"count"`
	At            string `json:"printEventDate"`
}

// ParsePrint reads the body of POST /print-events-storage/print-events-entry. Faults: Malformed,
// Invalid.
func ParsePrint(body []byte) (Print, error) {
	p, err := jsonschema.ReadChecked[Print](PrintSchema, body)
	if err != nil {
		return Print{}, err
	}
	at, err := jsonschema.ParseTime(p.At)
	p.At = at.UTC().Format(schemas.FolioTime)
	return p, err
}

// ParsePrintedRequests reads the ids in the body of POST /print-events-storage/print-events-status.
// Faults: Malformed, Invalid.
func ParsePrintedRequests(body []byte) ([]string, error) {
	p, err := jsonschema.ReadChecked[Print](PrintedRequestsSchema, body)
	return p.RequestIDs, err
}

// ParseAnonymizedLoans reads the ids in the body of POST /anonymize-storage-loans, of any form. Faults:
// Malformed, Invalid.
func ParseAnonymizedLoans(body []byte) ([]string, error) {
	p, err := jsonschema.ReadChecked[struct {
		LoanIDs []string `json:"loanIds"`
	}](AnonymizedLoansSchema, body)
	return p.LoanIDs, err
}
