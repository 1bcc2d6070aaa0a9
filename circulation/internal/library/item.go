package library

import (
	"cmp"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/policy"
)

// The statuses of items that the checks know by name (mod-inventory-storage, item.json).
const (
	StatusAvailable        = "Available"
	StatusCheckedOut       = "Checked out"
	StatusInTransit        = "In transit"
	StatusAwaitingPickup   = "Awaiting pickup"
	StatusAwaitingDelivery = "Awaiting delivery"
	StatusDeclaredLost     = "Declared lost"
	StatusClaimedReturned  = "Claimed returned"
	StatusAgedToLost       = "Aged to lost"
	StatusIntellectualItem = "Intellectual item"
)

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
	ShelvingOrder                      string         `json:"effectiveShelvingOrder"`
	InTransitDestinationServicePointID string         `json:"inTransitDestinationServicePointId"`
	LastCheckIn                        map[string]any `json:"lastCheckIn"`

	YearCaption         []string `json:"yearCaption"`
	NumberOfPieces      string   `json:"numberOfPieces"`
	DescriptionOfPieces string   `json:"descriptionOfPieces"`
	AccessionNumber     string   `json:"accessionNumber"`
	AdministrativeNotes []string `json:"administrativeNotes"`
}

// LoanTypeID returns the temporary loan type if the item has one, else the permanent one.
func (i Item) LoanTypeID() string {
	return cmp.Or(i.TemporaryLoanTypeID, i.PermanentLoanTypeID)
}

// Status is an item's status and the date since which it has it.
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

// Parts returns the call number, nil for none.
func (c CallNumber) Parts() *CallNumber {
	if c == (CallNumber{}) {
		return nil
	}
	return &c
}

// Copy is an item and the records that it belongs to. A record that does not exist is empty.
type Copy struct {
	Item     Item
	Holdings Holdings
	Instance Instance
	Location Location
	Material Named
}

// Number returns the copy number of the item, else that of its holdings.
func (c Copy) Number() string { return cmp.Or(c.Item.CopyNumber, c.Holdings.CopyNumber) }

// Holdings links an item to its instance.
type Holdings struct {
	ID         string `json:"id"`
	InstanceID string `json:"instanceId"`
	CopyNumber string `json:"copyNumber"`
	// EffectiveLocationID is where the holdings are.
	EffectiveLocationID string `json:"effectiveLocationId"`
}

// Instance is a title.
type Instance struct {
	ID           string        `json:"id"`
	HRID         string        `json:"hrid"`
	Title        string        `json:"title"`
	Contributors []Contributor `json:"contributors"`
	Identifiers  []Identifier  `json:"identifiers"`

	Editions             []string      `json:"editions"`
	PhysicalDescriptions []string      `json:"physicalDescriptions"`
	Publication          []Publication `json:"publication"`
	Series               []Series      `json:"series"`
}

// Series is a series to which a title belongs.
type Series struct {
	Value string `json:"value"`
}

// Identifier is an ISBN or another number of a title.
type Identifier struct {
	TypeID string `json:"identifierTypeId"`
	Value  string `json:"value"`
}

// Publication is where and when an edition of a title appeared.
type Publication struct {
	Publisher         string `json:"publisher,omitempty"`
	Place             string `json:"place,omitempty"`
	DateOfPublication string `json:"dateOfPublication,omitempty"`
	Role              string `json:"role,omitempty"`
}

// Contributor is an author or editor.
type Contributor struct {
	Name    string `json:"name"`
	Primary bool   `json:"primary"`
}

// Location is a shelf with the units that it belongs to.
type Location struct {
	ID                  string   `json:"id"`
	Name                string   `json:"name"`
	Code                string   `json:"code"`
	DiscoveryName       string   `json:"discoveryDisplayName"`
	InstitutionID       string   `json:"institutionId"`
	CampusID            string   `json:"campusId"`
	LibraryID           string   `json:"libraryId"`
	PrimaryServicePoint string   `json:"primaryServicePoint"`
	ServicePointIDs     []string `json:"servicePointIds"`
}

// IsServedBy reports whether items of the location are at home at the service point. A location
// without a primary service point, or no location, has no destination for its items. They are at
// home everywhere.
func (l Location) IsServedBy(servicePointID string) bool {
	same := func(id string) bool { return strings.EqualFold(id, servicePointID) }
	return l.PrimaryServicePoint == "" || same(l.PrimaryServicePoint) || slices.ContainsFunc(l.ServicePointIDs, same)
}

// Named is a record of which only the name matters, such as a material type.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// NamedKind is a kind of such records.
type NamedKind string

// The kinds, by what an error calls one.
const (
	AddressType       NamedKind = "address type"
	Campus            NamedKind = "campus"
	Institution       NamedKind = "institution"
	LibraryUnit       NamedKind = "library"
	LoanType          NamedKind = "loan type"
	LostItemPolicy    NamedKind = "lost item policy"
	MaterialType      NamedKind = "material type"
	OverdueFinePolicy NamedKind = "overdue fine policy"
)

// ServicePoint is a desk, or another place where items change hands.
type ServicePoint struct {
	ID                   string                 `json:"id"`
	Name                 string                 `json:"name"`
	Code                 string                 `json:"code"`
	DiscoveryDisplayName string                 `json:"discoveryDisplayName"`
	Description          string                 `json:"description"`
	ShelvingLagTime      *policy.WholeNumber    `json:"shelvingLagTime"`
	PickupLocation       bool                   `json:"pickupLocation"`
	HoldShelf            policy.HoldShelfPeriod `json:"holdShelfExpiryPeriod"`
}

// Named returns the id and the name of the service point; nil for none.
func (p ServicePoint) Named() *Named {
	if p.ID == "" {
		return nil
	}
	return &Named{ID: p.ID, Name: p.Name}
}
