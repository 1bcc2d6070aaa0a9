package related

import (
	"context"

	"checkoutlock/circulation/internal/library"
)

// slipsFound are the records that only FetchSlips finds, by id.
type slipsFound struct {
	AddressTypes map[string]library.Named

	campuses, institutions map[string]library.Named
}

// FetchSlips is Fetch for slips: it also reads the groups of the users, the loan types of the items, the
// units of their locations, and types of addresses.
func FetchSlips(ctx context.Context, r Records, want Wanted, addressTypes []string) (*Found, error) {
	want.GroupsOfUsers, want.LibraryUnits = true, true
	f, err := Fetch(ctx, r, want)
	if err != nil {
		return nil, err
	}
	g, ctx := library.NewCalls(ctx)
	fetchEach(ctx, g, &f.AddressTypes, namesOf(r, library.AddressType), addressTypes)
	fetchEach(ctx, g, &f.campuses, namesOf(r, library.Campus), listIDs(f.locations, func(l library.Location) string { return l.CampusID }))
	fetchEach(ctx, g, &f.institutions, namesOf(r, library.Institution), listIDs(f.locations, func(l library.Location) string { return l.InstitutionID }))
	return f, g.Wait()
}

// Slip returns what a slip of an item for a patron names, after FetchSlips.
func (f *Found) Slip(itemID, requesterID string) library.Slip {
	c, requester := f.Copy(itemID), f.Users[requesterID]
	return library.Slip{
		LoanType: f.LoanTypes[c.Item.LoanTypeID()], Library: f.LibraryUnits[c.Location.LibraryID],
		Campus: f.campuses[c.Location.CampusID], Institution: f.institutions[c.Location.InstitutionID],
		Requester: requester, Group: f.Groups[requester.PatronGroup],
	}
}
