// Package related reads the records that stored loans and requests refer to, for the views of a page
// of them: each record once, and many in one call.
package related

import (
	"context"
	"maps"
	"slices"

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
	LibraryUnit(ctx context.Context, id string) (library.Named, error)
	MaterialType(ctx context.Context, id string) (library.Named, error)
	ServicePoint(ctx context.Context, id string) (library.ServicePoint, error)
	Group(ctx context.Context, id string) (library.Group, error)
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
	OverdueFinePolicy(ctx context.Context, id string) (library.Named, error)
	LostItemPolicy(ctx context.Context, id string) (library.Named, error)
}

// atOnce bounds the fetches of reference records of one kind.
const atOnce = 8

// Wanted are the ids of the records to read, from IDs. What belongs to an item is read with it.
type Wanted struct {
	Users, Items, ServicePoints, Groups, Policies []string
	OverdueFinePolicies, LostItemPolicies         []string
	// GroupsOfUsers, LibraryUnits and OpenLoans ask for more: the groups of the users, the libraries of
	// the items' locations, and the open loans of the items.
	GroupsOfUsers, LibraryUnits, OpenLoans bool
}

// Found are records by id. One that does not exist is missing.
type Found struct {
	Users         map[string]library.User
	Items         map[string]library.Item
	OpenLoans     map[string]library.OpenLoan // by the id of the item
	ServicePoints map[string]library.ServicePoint
	Groups        map[string]library.Group
	Policies      map[string]policy.LoanPolicy
	LibraryUnits  map[string]library.Named

	OverdueFinePolicies, LostItemPolicies map[string]library.Named

	holdings  map[string]library.Holdings
	instances map[string]library.Instance
	locations map[string]library.Location
	materials map[string]library.Named
}

// Copy returns an item with the records that it belongs to.
func (f *Found) Copy(itemID string) library.Copy {
	item := f.Items[itemID]
	holdings := f.holdings[item.HoldingsRecordID]
	return library.Copy{
		Item: item, Holdings: holdings, Instance: f.instances[holdings.InstanceID],
		Location: f.locations[item.EffectiveLocationID], Material: f.materials[item.MaterialTypeID],
	}
}

// Fetch reads everything in rounds: patrons, items and their loans; then holdings; then instances and
// reference records; then the locations' libraries. Faults are those of records except NotFound.
func Fetch(ctx context.Context, records Records, want Wanted) (*Found, error) {
	f := &Found{}
	if err := f.fetchMany(ctx, records, want); err != nil {
		return nil, err
	}
	var err error
	items := slices.Collect(maps.Values(f.Items))
	shelves := IDs(items, func(i library.Item) string { return i.HoldingsRecordID })
	if f.holdings, err = fetchByID(ctx, records.HoldingsRecords, shelves, func(h library.Holdings) string { return h.ID }); err != nil {
		return nil, err
	}
	if err := f.fetchReferences(ctx, records, want, items); err != nil {
		return nil, err
	}
	if want.LibraryUnits {
		units := IDs(slices.Collect(maps.Values(f.locations)), func(l library.Location) string { return l.LibraryID })
		f.LibraryUnits, err = fetchEach(ctx, records.LibraryUnit, units)
	}
	return f, err
}

func (f *Found) fetchMany(ctx context.Context, r Records, want Wanted) error {
	g, ctx := library.NewCalls(ctx)
	startFetchByID(ctx, g, &f.Users, r.Users, want.Users, func(u library.User) string { return u.ID })
	startFetchByID(ctx, g, &f.Items, r.Items, want.Items, func(i library.Item) string { return i.ID })
	if want.OpenLoans {
		startFetchByID(ctx, g, &f.OpenLoans, r.OpenLoans, want.Items, func(l library.OpenLoan) string { return l.ItemID })
	}
	return g.Wait()
}

func (f *Found) fetchReferences(ctx context.Context, r Records, want Wanted, items []library.Item) error {
	points := append(slices.Clone(want.ServicePoints), IDs(items, func(i library.Item) string { return i.InTransitDestinationServicePointID })...)
	groups := slices.Clone(want.Groups)
	if want.GroupsOfUsers {
		groups = append(groups, IDs(slices.Collect(maps.Values(f.Users)), func(u library.User) string { return u.PatronGroup })...)
	}
	titles := IDs(slices.Collect(maps.Values(f.holdings)), func(h library.Holdings) string { return h.InstanceID })
	g, ctx := library.NewCalls(ctx)
	startFetchByID(ctx, g, &f.instances, r.Instances, titles, func(i library.Instance) string { return i.ID })
	startFetch(ctx, g, &f.locations, r.Location, IDs(items, func(i library.Item) string { return i.EffectiveLocationID }))
	startFetch(ctx, g, &f.materials, r.MaterialType, IDs(items, func(i library.Item) string { return i.MaterialTypeID }))
	startFetch(ctx, g, &f.ServicePoints, r.ServicePoint, dropRepeats(points))
	startFetch(ctx, g, &f.Groups, r.Group, dropRepeats(groups))
	startFetch(ctx, g, &f.Policies, r.LoanPolicy, want.Policies)
	startFetch(ctx, g, &f.OverdueFinePolicies, r.OverdueFinePolicy, want.OverdueFinePolicies)
	startFetch(ctx, g, &f.LostItemPolicies, r.LostItemPolicy, want.LostItemPolicies)
	return g.Wait()
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

// startFetch starts to fetch reference records, of which a page names few.
func startFetch[T any](ctx context.Context, g *library.Calls, into *map[string]T, fetch func(context.Context, string) (T, error), ids []string) {
	g.Go(func() (err error) {
		*into, err = fetchEach(ctx, fetch, ids)
		return err
	})
}

// startFetchByID starts to fetch records in bulk.
func startFetchByID[T any](ctx context.Context, g *library.Calls, into *map[string]T, fetch func(context.Context, []string) ([]T, error), ids []string, idOf func(T) string) {
	g.Go(func() (err error) {
		*into, err = fetchByID(ctx, fetch, ids, idOf)
		return err
	})
}

// fetchByID fetches records in bulk.
func fetchByID[T any](ctx context.Context, fetch func(context.Context, []string) ([]T, error), ids []string, idOf func(T) string) (map[string]T, error) {
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // a nil map has no records
	}
	records, err := fetch(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]T, len(records))
	for _, record := range records {
		found[idOf(record)] = record
	}
	return found, nil
}

// fetchEach fetches records one by one and leaves out missing ones.
func fetchEach[T any](ctx context.Context, fetch func(context.Context, string) (T, error), ids []string) (map[string]T, error) {
	records, exists := make([]T, len(ids)), make([]bool, len(ids))
	g, ctx := library.NewCalls(ctx)
	g.SetLimit(atOnce)
	for i, id := range ids {
		g.Go(func() (err error) {
			records[i], err = fetch(ctx, id)
			exists[i] = err == nil
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found := map[string]T{}
	for i, id := range ids {
		if exists[i] {
			found[id] = records[i]
		}
	}
	return found, nil
}
