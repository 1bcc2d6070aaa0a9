package schemas

import "encoding/json"

// CheckOutSubjects is the body of POST /loan-storage/check-out-facts (ours): what a
// check-out names. All fields are optional. It is a body, because barcodes of patrons do
// not belong into logs of URLs.
type CheckOutSubjects struct {
	UserBarcode      string `json:"userBarcode,omitempty"`
	ProxyUserBarcode string `json:"proxyUserBarcode,omitempty"`
	ItemBarcode      string `json:"itemBarcode,omitempty"`
	// ItemID names the item instead of ItemBarcode.
	ItemID string `json:"itemId,omitempty"`
	// TitleLevel asks for the queue of the item's instance instead of the item's own.
	TitleLevel bool `json:"titleLevel,omitempty"`
}

// CheckOutFacts is the answer: the records that a check-out is judged by, as of one
// moment. A record that does not exist is absent.
type CheckOutFacts struct {
	User           json.RawMessage   `json:"user,omitempty"`
	ProxyUser      json.RawMessage   `json:"proxyUser,omitempty"`
	ProxyRelations []json.RawMessage `json:"proxyRelations,omitempty"` // of proxy and user
	ManualBlocks   []json.RawMessage `json:"manualBlocks,omitempty"`   // of the user
	// AutomatedBlocks is the answer of GET /automated-patron-blocks/{userId}.
	AutomatedBlocks json.RawMessage `json:"automatedBlocks,omitempty"`

	Item     json.RawMessage   `json:"item,omitempty"`
	Holdings json.RawMessage   `json:"holdings,omitempty"`
	Instance json.RawMessage   `json:"instance,omitempty"`
	OnLoan   bool              `json:"onLoan"`             // the item has an open loan
	Requests []json.RawMessage `json:"requests,omitempty"` // open ones, by position

	// OpenLoans counts the user's open loans as FOLIO's item limit does.
	OpenLoans []OpenLoans `json:"openLoans,omitempty"`
}

// OpenLoans is how many of a patron's open loans are of items with these types.
type OpenLoans struct {
	MaterialTypeID string `json:"materialTypeId"`
	LoanTypeID     string `json:"loanTypeId"` // the temporary one if the item has one
	Count          int    `json:"count"`
}

// MaxQueue is the longest queue of requests that a check-out reads. Positions come first,
// so only the end of a longer queue is cut off.
const MaxQueue = 10_000
