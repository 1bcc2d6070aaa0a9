package httpapi

import (
	"cmp"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

// staffSlip has the values of the tokens of staff slips, which a desk prints after a check-in and for
// what staff have to fetch. The names are FOLIO's (mod-circulation, StaffSlipMapper).
type staffSlip struct {
	Item            slipItem       `json:"item"`
	Request         *slipRequest   `json:"request,omitempty"`
	Requester       *slipRequester `json:"requester,omitempty"`
	CurrentDateTime string         `json:"currentDateTime"`
}

type slipItem struct {
	Title                string `json:"title,omitempty"`
	Barcode              string `json:"barcode,omitempty"`
	Status               string `json:"status,omitempty"` // none for a request for the title
	PrimaryContributor   string `json:"primaryContributor,omitempty"`
	AllContributors      string `json:"allContributors"`
	Enumeration          string `json:"enumeration,omitempty"`
	Volume               string `json:"volume,omitempty"`
	Chronology           string `json:"chronology,omitempty"`
	YearCaption          string `json:"yearCaption"`
	DisplaySummary       string `json:"displaySummary,omitempty"`
	MaterialType         string `json:"materialType,omitempty"`
	LoanType             string `json:"loanType,omitempty"`
	CopyNumber           string `json:"copy,omitempty"`
	NumberOfPieces       string `json:"numberOfPieces,omitempty"`
	DescriptionOfPieces  string `json:"descriptionOfPieces,omitempty"`
	AccessionNumber      string `json:"accessionNumber,omitempty"`
	DatesOfPublication   string `json:"datesOfPublication"`
	Editions             string `json:"editions"`
	PhysicalDescriptions string `json:"physicalDescriptions"`
	SeriesStatements     string `json:"seriesStatements"`
	AdministrativeNotes  string `json:"administrativeNotes"`
	InstanceHRID         string `json:"instanceHrid,omitempty"`
	CallNumber           string `json:"callNumber,omitempty"`
	CallNumberPrefix     string `json:"callNumberPrefix,omitempty"`
	CallNumberSuffix     string `json:"callNumberSuffix,omitempty"`
	ShelvingOrder        string `json:"shelvingOrder,omitempty"`

	EffectiveLocationSpecific      string `json:"effectiveLocationSpecific,omitempty"`
	EffectiveLocationLibrary       string `json:"effectiveLocationLibrary,omitempty"`
	EffectiveLocationCampus        string `json:"effectiveLocationCampus,omitempty"`
	EffectiveLocationInstitution   string `json:"effectiveLocationInstitution,omitempty"`
	EffectiveLocationDiscoveryName string `json:"effectiveLocationDiscoveryDisplayName,omitempty"`
	EffectiveLocationPrimaryPoint  string `json:"effectiveLocationPrimaryServicePointName,omitempty"`

	FromServicePoint      string `json:"fromServicePoint,omitempty"`
	ToServicePoint        string `json:"toServicePoint,omitempty"`
	LastCheckedInDateTime string `json:"lastCheckedInDateTime,omitempty"`
}

type slipRequest struct {
	RequestID               string `json:"requestID"`
	ServicePointPickup      string `json:"servicePointPickup,omitempty"`
	RequestDate             string `json:"requestDate,omitempty"`
	RequestExpirationDate   string `json:"requestExpirationDate,omitempty"`
	HoldShelfExpirationDate string `json:"holdShelfExpirationDate,omitempty"`
	PatronComments          string `json:"patronComments,omitempty"`
	DeliveryAddressType     string `json:"deliveryAddressType,omitempty"`
}

type slipRequester struct {
	FirstName          string `json:"firstName,omitempty"`
	PreferredFirstName string `json:"preferredFirstName,omitempty"`
	MiddleName         string `json:"middleName,omitempty"`
	LastName           string `json:"lastName,omitempty"`
	Barcode            string `json:"barcode,omitempty"`
	PatronGroup        string `json:"patronGroup,omitempty"`
	AddressLine1       string `json:"addressLine1,omitempty"`
	AddressLine2       string `json:"addressLine2,omitempty"`
	City               string `json:"city,omitempty"`
	Region             string `json:"region,omitempty"`
	PostalCode         string `json:"postalCode,omitempty"`
	CountryID          string `json:"countryId,omitempty"`
	AddressType        string `json:"addressType,omitempty"`
}

// describeSlip returns the slip of a check-in. addressType names the type of the delivery address.
func describeSlip(in checkin.Returned, addressType string) staffSlip {
	at := in.Slip.FindServicePoint(in.Copy.Location.PrimaryServicePoint)
	slip := staffSlip{Item: describeSlipItem(in.Copy, in.Slip, at), CurrentDateTime: library.Instant{Time: time.Now()}.Text()}
	slip.Item.LastCheckedInDateTime = cmp.Or(slip.Item.LastCheckedInDateTime, slip.CurrentDateTime)
	slip.Item.FromServicePoint, slip.Item.ToServicePoint = in.At.Name, in.Destination.Name
	if in.Request == nil {
		return slip
	}
	slip.Request = describeSlipRequest(in.Request, in.Slip.FindServicePoint(in.Request.PickupServicePointID), addressType)
	if u := in.Slip.Requester; u.ID != "" && strings.EqualFold(u.ID, in.Request.RequesterID) {
		slip.Requester = describeSlipRequester(u, in.Slip.Group, in.Request, addressType)
	}
	return slip
}

// describeListedSlip returns the slip of a request whose item staff have to fetch.
func describeListedSlip(s worklist.Slip) staffSlip {
	slip := staffSlip{
		Item: describeSlipItem(s.Copy, s.Parts, s.At), Request: describeSlipRequest(&s.Request, s.Pickup, s.AddressType),
		CurrentDateTime: library.Instant{Time: time.Now()}.Text(),
	}
	if s.Parts.Requester.ID != "" {
		slip.Requester = describeSlipRequester(s.Parts.Requester, s.Parts.Group, &s.Request, s.AddressType)
	}
	return slip
}

func describeSlipRequest(r *schemas.QueuedRequest, pickup library.ServicePoint, addressType string) *slipRequest {
	return &slipRequest{
		RequestID: r.ID, ServicePointPickup: pickup.Name, RequestDate: r.RequestDate, RequestExpirationDate: r.RequestExpirationDate,
		HoldShelfExpirationDate: r.HoldShelfExpirationDate, PatronComments: r.PatronComments,
		DeliveryAddressType: addressType,
	}
}

// describeSlipItem describes the copy, or only its title if it has no item. at is the primary service
// point of its location.
func describeSlipItem(book library.Copy, parts library.Slip, at library.ServicePoint) slipItem {
	item, title, location := book.Item, book.Instance, book.Location
	slip := slipItem{
		Title: title.Title, Barcode: item.Barcode, Status: item.Status.Name, InstanceHRID: title.HRID,
		Enumeration: item.Enumeration, Volume: item.Volume, Chronology: item.Chronology, YearCaption: strings.Join(item.YearCaption, "; "),
		DisplaySummary: item.DisplaySummary, MaterialType: book.Material.Name, LoanType: parts.LoanType.Name,
		CopyNumber:     book.Number(),
		NumberOfPieces: item.NumberOfPieces, DescriptionOfPieces: item.DescriptionOfPieces, AccessionNumber: item.AccessionNumber,
		AdministrativeNotes: strings.Join(item.AdministrativeNotes, "; "),
		Editions:            strings.Join(title.Editions, "; "), PhysicalDescriptions: strings.Join(title.PhysicalDescriptions, "; "),
		CallNumber: item.CallNumber.CallNumber, CallNumberPrefix: item.CallNumber.Prefix, CallNumberSuffix: item.CallNumber.Suffix,
		ShelvingOrder: item.ShelvingOrder,

		EffectiveLocationSpecific: location.Name, EffectiveLocationDiscoveryName: location.DiscoveryName,
		EffectiveLocationLibrary: parts.Library.Name, EffectiveLocationCampus: parts.Campus.Name,
		EffectiveLocationInstitution: parts.Institution.Name, EffectiveLocationPrimaryPoint: at.Name,
	}
	slip.LastCheckedInDateTime, _ = item.LastCheckIn["dateTime"].(string)
	described := loanview.DescribeItem(loanview.Known{Copy: book})
	contributors := convert.All(described.Contributors, func(c loanview.Name) string { return c.Name })
	slip.PrimaryContributor, slip.AllContributors = described.PrimaryContributor, strings.Join(contributors, "; ")
	slip.DatesOfPublication, slip.SeriesStatements = strings.Join(described.DatesOfPublication, "; "), strings.Join(described.SeriesStatements, "; ")
	return slip
}

// describeSlipRequester has the address of the request's delivery.
func describeSlipRequester(u library.User, group library.Group, request *schemas.QueuedRequest, addressType string) *slipRequester {
	address, exists := u.Personal.FindAddress(request.DeliveryAddressTypeID)
	if !exists {
		addressType = ""
	}
	return &slipRequester{
		FirstName: u.Personal.FirstName, PreferredFirstName: cmp.Or(u.Personal.PreferredFirstName, u.Personal.FirstName), MiddleName: u.Personal.MiddleName,
		LastName: u.Personal.LastName, Barcode: u.Barcode, PatronGroup: group.Group,
		AddressLine1: address.AddressLine1, AddressLine2: address.AddressLine2, City: address.City, Region: address.Region,
		PostalCode: address.PostalCode, CountryID: address.CountryID, AddressType: addressType,
	}
}
