// Package related reads the records that stored loans and requests refer to, for the views of a page
// of them: each record once, and many in one call.
package related

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// Records reads records. The methods with many ids return the existing ones; the others return a
// NotFound fault for a missing record.
type Records interface {
	Users(ctx context.Context, ids []string) ([]library.User, error)
	Items(ctx context.Context, ids []string) ([]library.Item, error)
	HoldingsRecords(ctx context.Context, ids []string) ([]library.Holdings, error)
	Instances(ctx context.Context, ids []string) ([]library.Instance, error)
	// OpenLoans returns the open loans of items.
	OpenLoans(ctx context.Context, itemIDs []string) ([]library.OpenLoan, error)

	// These may be two seconds old.
	Location(ctx context.Context, id string) (library.Location, error)
	Named(ctx context.Context, kind library.NamedKind, id string) (library.Named, error)
	ServicePoint(ctx context.Context, id string) (library.ServicePoint, error)
	Group(ctx context.Context, id string) (library.Group, error)
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
}

// atOnce bounds the fetches of reference records of one kind.
const atOnce = 8

// Wanted are the ids of the records to read, from IDs. What belongs to an item is read with it.
type Wanted struct {
	Users, Items, Titles, ServicePoints, Groups, Policies []string
	OverdueFinePolicies, LostItemPolicies, AddressTypes   []string
	// OpenLoans, RequestNames and SlipNames ask for more: the open loans of the items; the groups of the users,
	// the items' loan types and the libraries of their locations; the campuses and institutions of these.
	OpenLoans, RequestNames, SlipNames bool
}

// Found are records by id. One that does not exist is missing.
type Found struct {
	Users         map[string]library.User
	Items         map[string]library.Item
	Titles        map[string]library.Instance
	OpenLoans     map[string]library.OpenLoan // by the id of the item
	ServicePoints map[string]library.ServicePoint
	Groups        map[string]library.Group
	Policies      map[string]policy.LoanPolicy
	LibraryUnits  map[string]library.Named
	LoanTypes     map[string]library.Named

	OverdueFinePolicies, LostItemPolicies, AddressTypes map[string]library.Named

	holdings  map[string]library.Holdings
	locations map[string]library.Location

	materials, campuses, institutions map[string]library.Named
}

// Copy returns an item with the records that it belongs to.
func (f *Found) Copy(itemID string) library.Copy {
	item := f.Items[itemID]
	holdings := f.holdings[item.HoldingsRecordID]
	return library.Copy{
		Item: item, Holdings: holdings, Instance: f.Titles[holdings.InstanceID],
		Location: f.locations[item.EffectiveLocationID], Material: f.materials[item.MaterialTypeID],
	}
}

// Slip returns what a slip of an item for a patron names, if RequestNames and SlipNames were wanted.
func (f *Found) Slip(itemID, requesterID string) library.Slip {
	c, requester := f.Copy(itemID), f.Users[requesterID]
	return library.Slip{
		LoanType: f.LoanTypes[c.Item.LoanTypeID()], Library: f.LibraryUnits[c.Location.LibraryID],
		Campus: f.campuses[c.Location.CampusID], Institution: f.institutions[c.Location.InstitutionID],
		Requester: requester, Group: f.Groups[requester.PatronGroup],
	}
}

// RenderPage returns what render makes of each document of a kind, of its links L, and of the records that
// want names for the links of all. Faults are those of records except NotFound.
func RenderPage[L any](
	ctx context.Context, records Records, kind string, docs []json.RawMessage, want func(all []L) Wanted,
	render func(doc json.RawMessage, links L, found *Found) (json.RawMessage, error),
) ([]json.RawMessage, error) {
	all := make([]L, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &all[i]); err != nil {
			return nil, fmt.Errorf("a stored %s cannot be read: %w", kind, err)
		}
	}
	found, err := Fetch(ctx, records, want(all))
	if err != nil {
		return nil, err
	}
	views := make([]json.RawMessage, len(docs))
	for i, doc := range docs {
		if views[i], err = render(doc, all[i], found); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// First returns the only view of a page of one.
func First(views []json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// rounds are the calls that fetch everything; each needs what those before have found.
var rounds = []func(*Found, context.Context, *library.Calls, Records, Wanted){
	(*Found).fetchSubjects, (*Found).fetchHoldings, (*Found).fetchReferences, (*Found).fetchUnits,
}

// Fetch reads the wanted records. Faults are those of records except NotFound.
func Fetch(ctx context.Context, r Records, want Wanted) (*Found, error) {
	f := &Found{}
	for _, start := range rounds {
		g, gctx := library.NewCalls(ctx)
		start(f, gctx, g, r, want)
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Found) fetchSubjects(ctx context.Context, g *library.Calls, r Records, want Wanted) {
	fetchByID(ctx, g, &f.Users, r.Users, want.Users, func(u library.User) string { return u.ID })
	fetchByID(ctx, g, &f.Items, r.Items, want.Items, func(i library.Item) string { return i.ID })
	if want.OpenLoans {
		fetchByID(ctx, g, &f.OpenLoans, r.OpenLoans, want.Items, func(l library.OpenLoan) string { return l.ItemID })
	}
}

func (f *Found) fetchHoldings(ctx context.Context, g *library.Calls, r Records, _ Wanted) {
	ids := listIDs(f.Items, func(i library.Item) string { return i.HoldingsRecordID })
	fetchByID(ctx, g, &f.holdings, r.HoldingsRecords, ids, func(h library.Holdings) string { return h.ID })
}

func (f *Found) fetchReferences(ctx context.Context, g *library.Calls, r Records, want Wanted) {
	points := slices.Concat(want.ServicePoints, listIDs(f.Items, func(i library.Item) string { return i.InTransitDestinationServicePointID }))
	groups := want.Groups
	if want.RequestNames {
		groups = slices.Concat(groups, listIDs(f.Users, func(u library.User) string { return u.PatronGroup }))
	}
	titles := slices.Concat(want.Titles, listIDs(f.holdings, func(h library.Holdings) string { return h.InstanceID }))
	fetchByID(ctx, g, &f.Titles, r.Instances, dropRepeats(titles), func(i library.Instance) string { return i.ID })
	fetchEach(ctx, g, &f.locations, r.Location, listIDs(f.Items, func(i library.Item) string { return i.EffectiveLocationID }))
	fetchEach(ctx, g, &f.materials, namesOf(r, library.MaterialType), listIDs(f.Items, func(i library.Item) string { return i.MaterialTypeID }))
	fetchEach(ctx, g, &f.ServicePoints, r.ServicePoint, dropRepeats(points))
	fetchEach(ctx, g, &f.Groups, r.Group, dropRepeats(groups))
	fetchEach(ctx, g, &f.Policies, r.LoanPolicy, want.Policies)
	fetchEach(ctx, g, &f.OverdueFinePolicies, namesOf(r, library.OverdueFinePolicy), want.OverdueFinePolicies)
	fetchEach(ctx, g, &f.LostItemPolicies, namesOf(r, library.LostItemPolicy), want.LostItemPolicies)
	fetchEach(ctx, g, &f.AddressTypes, namesOf(r, library.AddressType), want.AddressTypes)
}

func (f *Found) fetchUnits(ctx context.Context, g *library.Calls, r Records, want Wanted) {
	if want.RequestNames {
		fetchEach(ctx, g, &f.LibraryUnits, namesOf(r, library.LibraryUnit), listIDs(f.locations, func(l library.Location) string { return l.LibraryID }))
		fetchEach(ctx, g, &f.LoanTypes, namesOf(r, library.LoanType), listIDs(f.Items, library.Item.LoanTypeID))
	}
	if want.SlipNames {
		fetchEach(ctx, g, &f.campuses, namesOf(r, library.Campus), listIDs(f.locations, func(l library.Location) string { return l.CampusID }))
		fetchEach(ctx, g, &f.institutions, namesOf(r, library.Institution), listIDs(f.locations, func(l library.Location) string { return l.InstitutionID }))
	}
}

// namesOf reads records of the kind.
func namesOf(r Records, kind library.NamedKind) func(context.Context, string) (library.Named, error) {
	return func(ctx context.Context, id string) (library.Named, error) { return r.Named(ctx, kind, id) }
}

// listIDs is IDs for records that were found.
func listIDs[T any](found map[string]T, idOf func(T) string) []string {
	return IDs(slices.Collect(maps.Values(found)), idOf)
}

// IDs returns the distinct ids that the records name, without "".
func IDs[T any](records []T, idsOf ...func(T) string) []string {
	var found []string
	for _, idOf := range idsOf {
		for _, record := range records {
			found = append(found, idOf(record))
		}
	}
	return dropRepeats(found)
}

func dropRepeats(ids []string) []string {
	seen := map[string]bool{"": true}
	var found []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	return found
}

// fetchByID starts to fetch records in bulk. Each is found by its own id, and by those of ids that name
// it: ids of stored records may have capitals.
func fetchByID[T any](ctx context.Context, g *library.Calls, into *map[string]T, find func(context.Context, []string) ([]T, error), ids []string, idOf func(T) string) {
	if len(ids) == 0 {
		return
	}
	g.Go(func() error {
		records, err := find(ctx, ids)
		*into = make(map[string]T, len(records))
		for _, record := range records {
			(*into)[strings.ToLower(idOf(record))] = record
		}
		for _, id := range ids {
			if record, exists := (*into)[strings.ToLower(id)]; exists {
				(*into)[id] = record
			}
		}
		return err
	})
}

// fetchEach starts to fetch reference records one by one, of which a page names few. It leaves out
// missing ones.
func fetchEach[T any](ctx context.Context, g *library.Calls, into *map[string]T, find func(context.Context, string) (T, error), ids []string) {
	g.Go(func() error {
		var mu sync.Mutex
		*into = map[string]T{}
		kind, ctx := library.NewCalls(ctx)
		kind.SetLimit(atOnce)
		for _, id := range ids {
			kind.Go(func() error {
				record, exists, err := fault.Found(find(ctx, id))
				if err == nil && exists {
					mu.Lock()
					defer mu.Unlock()
					(*into)[id] = record
				}
				return err
			})
		}
		return kind.Wait()
	})
}
