// Package loanview makes the loan that FOLIO's clients get from the stored one: it adds
// descriptions of the item, borrower, policy and places.
package loanview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	fast "github.com/segmentio/encoding/json"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas/convert"
)

// Known are the records that a loan refers to. A zero record is a missing one; the view leaves its
// part out.
type Known struct {
	Copy         library.Copy
	Destination  library.ServicePoint // where the item is in transit to
	User         library.User
	Group        library.Group // of the patron when the item was lent
	Policy       policy.LoanPolicy
	OverdueFine  library.Named
	LostItem     library.Named
	ServicePoint library.ServicePoint // where it was lent
	ReturnedAt   library.ServicePoint // where it was checked in
}

// Item is the item as FOLIO describes it within a loan and in the answer to a
// check-in.
type Item struct {
	ID                  string              `json:"id"`
	HoldingsRecordID    string              `json:"holdingsRecordId,omitempty"`
	InstanceID          string              `json:"instanceId,omitempty"`
	InstanceHRID        string              `json:"instanceHrid,omitempty"`
	Title               string              `json:"title,omitempty"`
	Barcode             string              `json:"barcode,omitempty"`
	Contributors        []Name              `json:"contributors"`
	PrimaryContributor  string              `json:"primaryContributor,omitempty"`
	CallNumber          string              `json:"callNumber,omitempty"`
	CallNumberParts     *library.CallNumber `json:"callNumberComponents,omitempty"`
	CopyNumber          string              `json:"copyNumber,omitempty"`
	Volume              string              `json:"volume,omitempty"`
	Enumeration         string              `json:"enumeration,omitempty"`
	Chronology          string              `json:"chronology,omitempty"`
	DisplaySummary      string              `json:"displaySummary,omitempty"`
	Status              library.Status      `json:"status"`
	InTransitTo         string              `json:"inTransitDestinationServicePointId,omitempty"`
	InTransitToDescribe *library.Named      `json:"inTransitDestinationServicePoint,omitempty"`
	Location            *Name               `json:"location,omitempty"`
	MaterialType        *Name               `json:"materialType,omitempty"`

	Editions             []string `json:"editions,omitempty"`
	SeriesStatements     []string `json:"seriesStatements,omitempty"`
	DatesOfPublication   []string `json:"datesOfPublication,omitempty"`
	PhysicalDescriptions []string `json:"physicalDescriptions,omitempty"`
	AdministrativeNotes  []string `json:"administrativeNotes,omitempty"`
	AccessionNumber      string   `json:"accessionNumber,omitempty"`
}

// Name describes a record by its name alone.
type Name struct {
	Name string `json:"name"`
}

func describeName(n string) *Name {
	if n == "" {
		return nil
	}
	return &Name{n}
}

// borrower is the patron as FOLIO describes one within a loan.
type borrower struct {
	FirstName          string `json:"firstName,omitempty"`
	LastName           string `json:"lastName,omitempty"`
	MiddleName         string `json:"middleName,omitempty"`
	PreferredFirstName string `json:"preferredFirstName,omitempty"`
	Barcode            string `json:"barcode,omitempty"`
	PatronGroup        string `json:"patronGroup,omitempty"`
}

// hidden are the fields of the stored loan that clients do not get.
var hidden = [...]string{"itemStatus", "patronGroupIdAtCheckout", "agedToLostDelayedBilling"}

// Render returns the loan with descriptions of the known records. It copies every other
// stored field. Source: mod-circulation's LoanRepresentation.
func Render(loan json.RawMessage, k Known) (json.RawMessage, error) {
	var out map[string]json.RawMessage
	if err := fast.Unmarshal(loan, &out); err != nil || out == nil {
		return nil, fmt.Errorf("the stored loan cannot be read: %w", err)
	}
	for _, field := range hidden {
		delete(out, field)
	}
	parts := map[string]any{"feesAndFines": map[string]int{"amountRemainingToPay": 0}} // there are no fees
	if k.Copy.Item.ID != "" {
		parts["item"] = DescribeItem(k)
	}
	if k.User.ID != "" {
		p := k.User.Personal
		parts["borrower"] = borrower{
			FirstName: p.FirstName, LastName: p.LastName, MiddleName: p.MiddleName,
			PreferredFirstName: p.PreferredFirstName, Barcode: k.User.Barcode, PatronGroup: k.User.PatronGroup,
		}
	}
	if k.Group.ID != "" {
		parts["patronGroupAtCheckout"] = library.Named{ID: k.Group.ID, Name: k.Group.Group}
	}
	if k.Policy.ID != "" {
		parts["loanPolicy"] = Name{k.Policy.Name}
	}
	if k.OverdueFine.ID != "" {
		parts["overdueFinePolicy"] = Name{k.OverdueFine.Name}
	}
	if k.LostItem.ID != "" {
		parts["lostItemPolicy"] = Name{k.LostItem.Name}
	}
	if place := DescribePlace(k.ServicePoint); place != nil {
		parts["checkoutServicePoint"] = place
	}
	if place := DescribePlace(k.ReturnedAt); place != nil {
		parts["checkinServicePoint"] = place
	}
	for field, part := range parts {
		raw, err := fast.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("describing the loan's %s: %w", field, err)
		}
		out[field] = raw
	}
	return fast.Marshal(out)
}

// DescribeItem returns the item of k, which must not be zero.
func DescribeItem(k Known) Item {
	i := Item{
		ID: k.Copy.Item.ID, HoldingsRecordID: k.Copy.Item.HoldingsRecordID, Barcode: k.Copy.Item.Barcode,
		InstanceID: k.Copy.Holdings.InstanceID, InstanceHRID: k.Copy.Instance.HRID, Title: k.Copy.Instance.Title,
		Contributors: DescribeContributors(k.Copy.Instance), CopyNumber: k.Copy.Number(), Volume: k.Copy.Item.Volume,
		Enumeration: k.Copy.Item.Enumeration, Chronology: k.Copy.Item.Chronology, DisplaySummary: k.Copy.Item.DisplaySummary,
		CallNumber: k.Copy.Item.CallNumber.CallNumber, CallNumberParts: k.Copy.Item.CallNumber.Parts(), Status: k.Copy.Item.Status,
		InTransitTo: k.Copy.Item.InTransitDestinationServicePointID,
		Location:    describeName(k.Copy.Location.Name), MaterialType: describeName(k.Copy.Material.Name),
		Editions: k.Copy.Instance.Editions, PhysicalDescriptions: k.Copy.Instance.PhysicalDescriptions,
		AdministrativeNotes: k.Copy.Item.AdministrativeNotes, AccessionNumber: k.Copy.Item.AccessionNumber,
	}
	if at := slices.IndexFunc(k.Copy.Instance.Contributors, func(c library.Contributor) bool { return c.Primary }); at >= 0 {
		i.PrimaryContributor = k.Copy.Instance.Contributors[at].Name
	}
	for _, p := range k.Copy.Instance.Publication {
		if p.DateOfPublication != "" {
			i.DatesOfPublication = append(i.DatesOfPublication, p.DateOfPublication)
		}
	}
	for _, s := range k.Copy.Instance.Series {
		i.SeriesStatements = append(i.SeriesStatements, s.Value)
	}
	if i.InTransitTo != "" {
		i.InTransitToDescribe = k.Destination.Named()
	}
	return i
}

// DescribeContributors returns the names of a title's contributors, never nil.
func DescribeContributors(title library.Instance) []Name {
	return convert.All(title.Contributors, func(c library.Contributor) Name { return Name{c.Name} })
}

// Location is a shelf as FOLIO describes it within a request or a report.
type Location struct {
	Name        string `json:"name"`
	LibraryName string `json:"libraryName,omitempty"`
	Code        string `json:"code"`
}

// DescribeLocation returns a location with the name of its library; nil for none.
func DescribeLocation(l library.Location, libraryName string) *Location {
	if l.ID == "" {
		return nil
	}
	return &Location{Name: l.Name, LibraryName: libraryName, Code: l.Code}
}

// Place is a service point as FOLIO describes it within a loan or a request.
type Place struct {
	ID                   string              `json:"id,omitempty"`
	Name                 string              `json:"name"`
	Code                 string              `json:"code,omitempty"`
	DiscoveryDisplayName string              `json:"discoveryDisplayName,omitempty"`
	Description          string              `json:"description,omitempty"`
	ShelvingLagTime      *policy.WholeNumber `json:"shelvingLagTime,omitempty"`
	PickupLocation       bool                `json:"pickupLocation"`
}

// DescribePlace returns the service point; nil for none.
func DescribePlace(p library.ServicePoint) *Place {
	if p.ID == "" {
		return nil
	}
	return &Place{
		ID: p.ID, Name: p.Name, Code: p.Code, DiscoveryDisplayName: p.DiscoveryDisplayName, Description: p.Description,
		ShelvingLagTime: p.ShelvingLagTime, PickupLocation: p.PickupLocation,
	}
}

// links are the parts of a stored loan that name other records.
type links struct {
	UserID         string `json:"userId"`
	ItemID         string `json:"itemId"`
	LoanPolicyID   string `json:"loanPolicyId"`
	OverdueFineID  string `json:"overdueFinePolicyId"`
	LostItemID     string `json:"lostItemPolicyId"`
	ServicePointID string `json:"checkoutServicePointId"`
	ReturnedAtID   string `json:"checkinServicePointId"`
	GroupID        string `json:"patronGroupIdAtCheckout"`
}

// RenderPage returns the loans as clients get them, in the same order. It fetches the records
// that they refer to in bulk, and leaves out the part of a missing one. Faults are those of
// records except NotFound.
func RenderPage(ctx context.Context, records related.Records, loans []json.RawMessage) ([]json.RawMessage, error) {
	return related.RenderPage(ctx, records, "loan", loans, listWanted, func(loan json.RawMessage, l links, found *related.Found) (json.RawMessage, error) {
		return Render(loan, pickKnown(found, l))
	})
}

// RenderOne is RenderPage for one loan.
func RenderOne(ctx context.Context, records related.Records, loan json.RawMessage) (json.RawMessage, error) {
	return related.First(RenderPage(ctx, records, []json.RawMessage{loan}))
}

func listWanted(all []links) related.Wanted {
	return related.Wanted{
		Users: related.IDs(all, func(l links) string { return l.UserID }), Items: related.IDs(all, func(l links) string { return l.ItemID }),
		ServicePoints: related.IDs(all, func(l links) string { return l.ServicePointID }, func(l links) string { return l.ReturnedAtID }),
		Groups:        related.IDs(all, func(l links) string { return l.GroupID }), Policies: related.IDs(all, func(l links) string { return l.LoanPolicyID }),
		OverdueFinePolicies: related.IDs(all, func(l links) string { return l.OverdueFineID }),
		LostItemPolicies:    related.IDs(all, func(l links) string { return l.LostItemID }),
	}
}

// pickKnown picks the records of one loan.
func pickKnown(found *related.Found, l links) Known {
	return Known{
		Copy: found.Copy(l.ItemID), Destination: found.ServicePoints[found.Items[l.ItemID].InTransitDestinationServicePointID],
		User: found.Users[l.UserID], Group: found.Groups[l.GroupID], Policy: found.Policies[l.LoanPolicyID],
		OverdueFine: found.OverdueFinePolicies[l.OverdueFineID], LostItem: found.LostItemPolicies[l.LostItemID],
		ServicePoint: found.ServicePoints[l.ServicePointID], ReturnedAt: found.ServicePoints[l.ReturnedAtID],
	}
}
