// Package requestview makes the request that FOLIO's clients get from the stored one: it adds
// descriptions of the item, its loan, the patrons and the place to fetch it.
package requestview

import (
	"context"
	"encoding/json"
	"fmt"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/related"
)

// links are the parts of a stored request that name other records.
type links struct {
	ItemID         string `json:"itemId"`
	InstanceID     string `json:"instanceId"`
	RequesterID    string `json:"requesterId"`
	ProxyID        string `json:"proxyUserId"`
	ServicePointID string `json:"pickupServicePointId"`
	AddressTypeID  string `json:"deliveryAddressTypeId"`
	PrintDetails   struct {
		RequesterID string `json:"requesterId"`
	} `json:"printDetails"`
}

// item is what a view adds to the request's copy of the item.
type item struct {
	HoldingsRecordID string              `json:"holdingsRecordId,omitempty"`
	InstanceID       string              `json:"instanceId,omitempty"`
	Barcode          string              `json:"barcode,omitempty"`
	Location         *loanview.Location  `json:"location,omitempty"`
	ContributorNames []loanview.Name     `json:"contributorNames"`
	Enumeration      string              `json:"enumeration,omitempty"`
	Volume           string              `json:"volume,omitempty"`
	Chronology       string              `json:"chronology,omitempty"`
	DisplaySummary   string              `json:"displaySummary,omitempty"`
	Status           string              `json:"status"`
	CallNumber       string              `json:"callNumber,omitempty"`
	CallNumberParts  *library.CallNumber `json:"callNumberComponents,omitempty"`
	CopyNumber       string              `json:"copyNumber,omitempty"`
	MaterialTypeID   string              `json:"materialTypeId,omitempty"`
	MaterialType     string              `json:"materialType,omitempty"`
	LoanTypeID       string              `json:"loanTypeId,omitempty"`
	LoanType         string              `json:"loanTypeName,omitempty"`
}

// title is the instance.
type title struct {
	Title            string                `json:"title"`
	Identifiers      []library.Identifier  `json:"identifiers,omitempty"`
	ContributorNames []loanview.Name       `json:"contributorNames"`
	Publication      []library.Publication `json:"publication,omitempty"`
	Editions         []string              `json:"editions,omitempty"`
}

// patron is the requester or the proxy.
type patron struct {
	FirstName          string         `json:"firstName,omitempty"`
	LastName           string         `json:"lastName,omitempty"`
	MiddleName         string         `json:"middleName,omitempty"`
	PreferredFirstName string         `json:"preferredFirstName,omitempty"`
	Barcode            string         `json:"barcode,omitempty"`
	PatronGroupID      string         `json:"patronGroupId,omitempty"`
	PatronGroup        *library.Group `json:"patronGroup,omitempty"`
}

// RenderPage returns the requests as clients get them, in the same order. It fetches the records
// that they refer to in bulk, and leaves out the part of a missing one. Faults are those of records
// except NotFound.
func RenderPage(ctx context.Context, records related.Records, requests []json.RawMessage) ([]json.RawMessage, error) {
	return related.RenderPage(ctx, records, "request", requests, listWanted, render)
}

// RenderOne is RenderPage for one request.
func RenderOne(ctx context.Context, records related.Records, request json.RawMessage) (json.RawMessage, error) {
	return related.First(RenderPage(ctx, records, []json.RawMessage{request}))
}

func listWanted(all []links) related.Wanted {
	return related.Wanted{
		Users: related.IDs(all, func(l links) string { return l.RequesterID }, func(l links) string { return l.ProxyID },
			func(l links) string { return l.PrintDetails.RequesterID }),
		Items:         related.IDs(all, func(l links) string { return l.ItemID }),
		Titles:        related.IDs(all, func(l links) string { return l.InstanceID }),
		ServicePoints: related.IDs(all, func(l links) string { return l.ServicePointID }),
		OpenLoans:     true, RequestNames: true,
	}
}

// render adds the descriptions of the known records. It keeps every stored field, also those of the
// stored copies. Source: mod-circulation's RequestRepresentation.
func render(request json.RawMessage, l links, found *related.Found) (json.RawMessage, error) {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(request, &out); err != nil || out == nil {
		return nil, fmt.Errorf("the stored request cannot be read: %w", err)
	}
	parts := map[string]any{}
	if _, exists := found.Items[l.ItemID]; exists {
		parts["item"] = describeItem(found, l.ItemID)
	}
	if t := found.Titles[l.InstanceID]; t.ID != "" {
		parts["instance"] = title{
			Title: t.Title, Identifiers: t.Identifiers, ContributorNames: loanview.DescribeContributors(t),
			Publication: t.Publication, Editions: t.Editions,
		}
	}
	if open, exists := found.OpenLoans[l.ItemID]; exists && !open.DueDate.IsZero() {
		parts["loan"] = map[string]library.Instant{"dueDate": open.DueDate}
	}
	for field, id := range map[string]string{"requester": l.RequesterID, "proxy": l.ProxyID} {
		if u := found.Users[id]; u.ID != "" {
			parts[field] = describePatron(found, u)
		}
	}
	if u := found.Users[l.PrintDetails.RequesterID]; u.ID != "" {
		name := patron{FirstName: u.Personal.FirstName, LastName: u.Personal.LastName, MiddleName: u.Personal.MiddleName}
		parts["printDetails"] = map[string]patron{"lastPrintRequester": name}
	}
	if place := loanview.DescribePlace(found.ServicePoints[l.ServicePointID]); place != nil {
		place.ID = "" // as in FOLIO, the request has it
		parts["pickupServicePoint"] = place
	}
	if address, exists := found.Users[l.RequesterID].Personal.FindAddress(l.AddressTypeID); exists {
		parts["deliveryAddress"] = address
	}
	for field, part := range parts {
		merged, err := mergeInto(out[field], part)
		if err != nil {
			return nil, fmt.Errorf("describing the request's %s: %w", field, err)
		}
		out[field] = merged
	}
	return json.Marshal(out)
}

// mergeInto writes the properties of part over those of the stored object. Anything else that is
// stored gives way.
func mergeInto(stored json.RawMessage, part any) (json.RawMessage, error) {
	raw, err := json.Marshal(part)
	merged := map[string]json.RawMessage{}
	if err != nil || json.Unmarshal(stored, &merged) != nil {
		return raw, err
	}
	if err := json.Unmarshal(raw, &merged); err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

func describeItem(found *related.Found, id string) item {
	book := found.Copy(id)
	return item{
		HoldingsRecordID: book.Item.HoldingsRecordID, InstanceID: book.Holdings.InstanceID, Barcode: book.Item.Barcode,
		ContributorNames: loanview.DescribeContributors(book.Instance), Enumeration: book.Item.Enumeration, Volume: book.Item.Volume, Chronology: book.Item.Chronology,
		DisplaySummary: book.Item.DisplaySummary, Status: book.Item.Status.Name, CallNumber: book.Item.CallNumber.CallNumber, CallNumberParts: book.Item.CallNumber.Parts(),
		CopyNumber: book.Number(), MaterialTypeID: book.Item.MaterialTypeID, MaterialType: book.Material.Name,
		LoanTypeID: book.Item.LoanTypeID(), LoanType: found.LoanTypes[book.Item.LoanTypeID()].Name,
		Location: loanview.DescribeLocation(book.Location, found.LibraryUnits[book.Location.LibraryID].Name),
	}
}

func describePatron(found *related.Found, u library.User) patron {
	view := patron{
		FirstName: u.Personal.FirstName, LastName: u.Personal.LastName, MiddleName: u.Personal.MiddleName,
		PreferredFirstName: u.Personal.PreferredFirstName, Barcode: u.Barcode, PatronGroupID: u.PatronGroup,
	}
	if g := found.Groups[u.PatronGroup]; g.ID != "" {
		view.PatronGroup = &g
	}
	return view
}
