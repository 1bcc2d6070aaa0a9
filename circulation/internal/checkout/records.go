package checkout

import (
	"encoding/json"
	"fmt"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// The parts of FOLIO's records that a check-out judges or answers.

// User is a patron (mod-users).
type User struct {
	ID             string   `json:"id"`
	Username       string   `json:"username"`
	Barcode        string   `json:"barcode"`
	Active         *bool    `json:"active"`
	PatronGroup    string   `json:"patronGroup"`
	ExpirationDate Instant  `json:"expirationDate"`
	Personal       Personal `json:"personal"`
}

// Inactive tells whether the patron may neither borrow nor request. FOLIO compares
// the date itself: storage leaves active as it was when a card expires. A patron
// without the property active is not inactive by it.
func (u User) Inactive(now time.Time) bool {
	return u.Active != nil && !*u.Active || !u.ExpirationDate.IsZero() && u.ExpirationDate.Before(now)
}

// Personal is a patron's name.
type Personal struct {
	FirstName          string `json:"firstName"`
	LastName           string `json:"lastName"`
	MiddleName         string `json:"middleName"`
	PreferredFirstName string `json:"preferredFirstName"`
}

// FullName is the name as FOLIO's messages have it: last name first.
func (p Personal) FullName() string {
	if p.FirstName == "" {
		return p.LastName
	}
	return p.LastName + ", " + p.FirstName
}

// Item is a copy that can be lent (mod-inventory-storage).
type Item struct {
	ID                  string `json:"id"`
	Version             int    `json:"_version"`
	Barcode             string `json:"barcode"`
	Status              Status `json:"status"`
	HoldingsRecordID    string `json:"holdingsRecordId"`
	MaterialTypeID      string `json:"materialTypeId"`
	PermanentLoanTypeID string `json:"permanentLoanTypeId"`
	TemporaryLoanTypeID string `json:"temporaryLoanTypeId"`
	EffectiveLocationID string `json:"effectiveLocationId"`

	CopyNumber                         string         `json:"copyNumber"`
	Volume                             string         `json:"volume"`
	Enumeration                        string         `json:"enumeration"`
	Chronology                         string         `json:"chronology"`
	DisplaySummary                     string         `json:"displaySummary"`
	CallNumber                         CallNumber     `json:"effectiveCallNumberComponents"`
	InTransitDestinationServicePointID string         `json:"inTransitDestinationServicePointId"`
	LastCheckIn                        map[string]any `json:"lastCheckIn"`
}

// LoanTypeID is the loan type in force: the temporary one, else the permanent.
func (i Item) LoanTypeID() string {
	if i.TemporaryLoanTypeID != "" {
		return i.TemporaryLoanTypeID
	}
	return i.PermanentLoanTypeID
}

// Status is an item's status and since when it has it.
type Status struct {
	Name string `json:"name"`
	Date string `json:"date,omitempty"`
}

// CallNumber is an item's call number with its parts.
type CallNumber struct {
	CallNumber string `json:"callNumber,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
	Suffix     string `json:"suffix,omitempty"`
}

// Holdings ties an item to its instance.
type Holdings struct {
	ID         string `json:"id"`
	InstanceID string `json:"instanceId"`
	CopyNumber string `json:"copyNumber"`
}

// Instance is the title.
type Instance struct {
	ID           string        `json:"id"`
	HRID         string        `json:"hrid"`
	Title        string        `json:"title"`
	Contributors []Contributor `json:"contributors"`
}

// Contributor is an author, editor or the like.
type Contributor struct {
	Name    string `json:"name"`
	Primary bool   `json:"primary"`
}

// Location is a shelf, and what it belongs to.
type Location struct {
	ID                  string   `json:"id"`
	Name                string   `json:"name"`
	Code                string   `json:"code"`
	InstitutionID       string   `json:"institutionId"`
	CampusID            string   `json:"campusId"`
	LibraryID           string   `json:"libraryId"`
	PrimaryServicePoint string   `json:"primaryServicePoint"`
	ServicePointIDs     []string `json:"servicePointIds"`
}

// Named is a record of which only the name matters: a material type, a service
// point.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Group is a patron group.
type Group struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	Desc  string `json:"desc"`
}

// Loan is the storage loan (mod-circulation-storage, loan.json) as a check-out
// writes it.
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
	// IsDCB is of items that other libraries of a consortium lend, which the pair
	// has none of. FOLIO's loans always say so.
	IsDCB bool `json:"isDcb"`
}

// Instant is a point in time as FOLIO's records hold it, see jsonschema.ParseTime. It
// is written with milliseconds, in UTC.
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
	if err != nil { // with the value, as encoding/json does not tell which field has it
		return fmt.Errorf("%q %w", fault.Shown(*s), err)
	}
	i.Time = t
	return nil
}

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(i.text())
}

func (i Instant) text() string { return i.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
