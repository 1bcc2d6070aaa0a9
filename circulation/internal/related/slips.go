package related

import (
	"context"

	"checkoutlock/circulation/internal/library"
)

// SlipsWanted are the ids of more records that slips name, from IDs.
type SlipsWanted struct{ Titles, AddressTypes []string }

// slipsFound are the records that only FetchSlips finds, by id.
type slipsFound struct {
	Titles       map[string]library.Instance
	AddressTypes map[string]library.Named

	campuses, institutions, loanTypes map[string]library.Named
}

// FetchSlips is Fetch for slips: it also reads the groups of the users, the units of the items' locations
// and the loan types.
func FetchSlips(ctx context.Context, r Records, want Wanted, more SlipsWanted) (*Found, error) {
	want.GroupsOfUsers, want.LibraryUnits = true, true
	f, err := Fetch(ctx, r, want)
	if err != nil {
		return nil, err
	}
	g, ctx := library.NewCalls(ctx)
	fetchByID(ctx, g, &f.Titles, r.Instances, more.Titles, func(i library.Instance) string { return i.ID })
	fetchEach(ctx, g, &f.AddressTypes, namesOf(r, library.AddressType), more.AddressTypes)
	fetchEach(ctx, g, &f.campuses, namesOf(r, library.Campus), listIDs(f.locations, func(l library.Location) string { return l.CampusID }))
	fetchEach(ctx, g, &f.institutions, namesOf(r, library.Institution), listIDs(f.locations, func(l library.Location) string { return l.InstitutionID }))
	fetchEach(ctx, g, &f.loanTypes, namesOf(r, library.LoanType), listIDs(f.Items, library.Item.LoanTypeID))
	return f, g.Wait()
}

// Slip returns what a slip of an item for a patron names, after FetchSlips.
func (f *Found) Slip(itemID, requesterID string) library.Slip {
	c, requester := f.Copy(itemID), f.Users[requesterID]
	return library.Slip{
		LoanType: f.loanTypes[c.Item.LoanTypeID()], Library: f.LibraryUnits[c.Location.LibraryID],
		Campus: f.campuses[c.Location.CampusID], Institution: f.institutions[c.Location.InstitutionID],
		Requester: requester, Group: f.Groups[requester.PatronGroup],
	}
}
