package httpapi

import (
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// staffSlip has the values of the tokens of staff slips, which a desk prints after a check-in. The
// names are FOLIO's (mod-circulation, TemplateContextUtil).
type staffSlip struct {
	Item      slipItem       `json:"item"`
	Request   *slipRequest   `json:"request,omitempty"`
	Requester *slipRequester `json:"requester,omitempty"`
}

type slipItem struct {
	Title                string `json:"title,omitempty"`
	Barcode              string `json:"barcode,omitempty"`
	Status               string `json:"status"`
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
	InstanceHRID         string `json:"instanceHrid,omitempty"`
	CallNumber           string `json:"callNumber,omitempty"`
	CallNumberPrefix     string `json:"callNumberPrefix,omitempty"`
	CallNumberSuffix     string `json:"callNumberSuffix,omitempty"`

	EffectiveLocationSpecific      string `json:"effectiveLocationSpecific,omitempty"`
	EffectiveLocationLibrary       string `json:"effectiveLocationLibrary,omitempty"`
	EffectiveLocationCampus        string `json:"effectiveLocationCampus,omitempty"`
	EffectiveLocationInstitution   string `json:"effectiveLocationInstitution,omitempty"`
	EffectiveLocationDiscoveryName string `json:"effectiveLocationDiscoveryDisplayName,omitempty"`
	EffectiveLocationPrimaryPoint  string `json:"effectiveLocationPrimaryServicePointName,omitempty"`

	FromServicePoint      string `json:"fromServicePoint,omitempty"`
	ToServicePoint        string `json:"toServicePoint,omitempty"`
	LastCheckedInDateTime string `json:"lastCheckedInDateTime"`
}

type slipRequest struct {
	RequestID               string `json:"requestID"`
	ServicePointPickup      string `json:"servicePointPickup,omitempty"`
	RequestDate             string `json:"requestDate,omitempty"`
	RequestExpirationDate   string `json:"requestExpirationDate,omitempty"`
	HoldShelfExpirationDate string `json:"holdShelfExpirationDate,omitempty"`
	PatronComments          string `json:"patronComments,omitempty"`
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
}

// describeSlip returns the slip of a check-in.
func describeSlip(in checkin.Returned) staffSlip {
	slip := staffSlip{Item: describeSlipItem(in)}
	if in.Request == nil {
		return slip
	}
	slip.Request = &slipRequest{
		RequestID: in.Request.ID, ServicePointPickup: in.Slip.FindServicePoint(in.Request.PickupServicePointID).Name,
		RequestDate: in.Request.RequestDate, RequestExpirationDate: in.Request.RequestExpirationDate,
		HoldShelfExpirationDate: in.Request.HoldShelfExpirationDate, PatronComments: in.Request.PatronComments,
	}
	if u := in.Slip.Requester; u.ID != "" && strings.EqualFold(u.ID, in.Request.RequesterID) {
		slip.Requester = describeSlipRequester(u, in.Slip.Group, in.Request)
	}
	return slip
}

func describeSlipItem(in checkin.Returned) slipItem {
	item, title, location := in.Copy.Item, in.Copy.Instance, in.Copy.Location
	slip := slipItem{
		Title: title.Title, Barcode: item.Barcode, Status: item.Status.Name, InstanceHRID: title.HRID,
		Enumeration: item.Enumeration, Volume: item.Volume, Chronology: item.Chronology, YearCaption: strings.Join(item.YearCaption, "; "),
		DisplaySummary: item.DisplaySummary, MaterialType: in.Copy.Material.Name, LoanType: in.Slip.LoanType.Name,
		CopyNumber:     in.Copy.Number(),
		NumberOfPieces: item.NumberOfPieces, DescriptionOfPieces: item.DescriptionOfPieces, AccessionNumber: item.AccessionNumber,
		Editions: strings.Join(title.Editions, "; "), PhysicalDescriptions: strings.Join(title.PhysicalDescriptions, "; "),
		CallNumber: item.CallNumber.CallNumber, CallNumberPrefix: item.CallNumber.Prefix, CallNumberSuffix: item.CallNumber.Suffix,

		EffectiveLocationSpecific: location.Name, EffectiveLocationDiscoveryName: location.DiscoveryName,
		EffectiveLocationLibrary: in.Slip.Library.Name, EffectiveLocationCampus: in.Slip.Campus.Name,
		EffectiveLocationInstitution: in.Slip.Institution.Name, EffectiveLocationPrimaryPoint: in.Slip.FindServicePoint(location.PrimaryServicePoint).Name,
		LastCheckedInDateTime: library.Instant{Time: time.Now()}.Text(),
	}
	if at, ok := item.LastCheckIn["dateTime"].(string); ok {
		slip.LastCheckedInDateTime = at
	}
	var contributors, dates []string
	for _, c := range title.Contributors {
		contributors = append(contributors, c.Name)
		if c.Primary && slip.PrimaryContributor == "" {
			slip.PrimaryContributor = c.Name
		}
	}
	for _, p := range title.Publication {
		if p.DateOfPublication != "" {
			dates = append(dates, p.DateOfPublication)
		}
	}
	slip.AllContributors, slip.DatesOfPublication = strings.Join(contributors, "; "), strings.Join(dates, "; ")
	if in.Destination.ID != "" {
		slip.FromServicePoint, slip.ToServicePoint = in.At.Name, in.Destination.Name
	}
	return slip
}

// describeSlipRequester has the address of the request's delivery.
func describeSlipRequester(u library.User, group library.Group, request *schemas.QueuedRequest) *slipRequester {
	address, _ := u.Personal.FindAddress(request.DeliveryAddressTypeID)
	return &slipRequester{
		FirstName: u.Personal.FirstName, PreferredFirstName: u.Personal.PreferredFirstName, MiddleName: u.Personal.MiddleName,
		LastName: u.Personal.LastName, Barcode: u.Barcode, PatronGroup: group.Group,
		AddressLine1: address.AddressLine1, AddressLine2: address.AddressLine2, City: address.City, Region: address.Region,
		PostalCode: address.PostalCode, CountryID: address.CountryID,
	}
}
