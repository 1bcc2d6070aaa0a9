package library

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Loan is the storage loan (mod-circulation-storage, loan.json) as a check-out writes it.
type Loan struct {
	ID                                string  `json:"id"`
	UserID                            string  `json:"userId"`
	ProxyUserID                       string  `json:"proxyUserId,omitempty"`
	ItemID                            string  `json:"itemId"`
	ItemEffectiveLocationIDAtCheckOut string  `json:"itemEffectiveLocationIdAtCheckOut,omitempty"`
	Status                            Status  `json:"status"`
	LoanDate                          Instant `json:"loanDate"`
	DueDate                           Instant `json:"dueDate"`
	Action                            string  `json:"action"`
	ActionComment                     string  `json:"actionComment,omitempty"`
	ItemStatus                        string  `json:"itemStatus"`
	LoanPolicyID                      string  `json:"loanPolicyId"`
	OverdueFinePolicyID               string  `json:"overdueFinePolicyId,omitempty"`
	LostItemPolicyID                  string  `json:"lostItemPolicyId,omitempty"`
	CheckoutServicePointID            string  `json:"checkoutServicePointId"`
	PatronGroupIDAtCheckout           string  `json:"patronGroupIdAtCheckout,omitempty"`
	DueDateChangedByRecall            bool    `json:"dueDateChangedByRecall,omitempty"`
	// IsDCB says that the patron is one of another library, by which mod-dcb finds its loans. FOLIO's
	// loans always have the property.
	IsDCB bool `json:"isDcb"`
}

// OpenLoan is what requests are judged by, and show, of the loan of an item.
type OpenLoan struct {
	ID       string  `json:"id"`
	UserID   string  `json:"userId"`
	ItemID   string  `json:"itemId"`
	LoanDate Instant `json:"loanDate"`
	DueDate  Instant `json:"dueDate"`
	Recalled bool    `json:"dueDateChangedByRecall"`
}

// Instant is a point in time in FOLIO's records, see jsonschema.ParseTime. It is written in UTC
// with milliseconds.
type Instant struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler; null and "" are the zero Instant.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == nil || *s == "" {
		*i = Instant{}
		return nil
	}
	t, err := jsonschema.ParseTime(*s)
	if err != nil { // encoding/json adds the property to this type of error
		return &json.UnmarshalTypeError{Value: strconv.Quote(fault.Shown(*s)), Type: reflect.TypeFor[time.Time]()}
	}
	i.Time = t
	return nil
}

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(i.Text())
}

// Text returns the instant as JSON has it, without quotes.
func (i Instant) Text() string { return i.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
