package loanview

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// Records reads the records that loans refer to. The methods with many ids return the existing
// ones; the others return a NotFound fault for a missing record.
type Records interface {
	Users(ctx context.Context, ids []string) ([]library.User, error)
	Items(ctx context.Context, ids []string) ([]library.Item, error)
	HoldingsRecords(ctx context.Context, ids []string) ([]library.Holdings, error)
	Instances(ctx context.Context, ids []string) ([]library.Instance, error)

	Location(ctx context.Context, id string) (library.Location, error)
	MaterialType(ctx context.Context, id string) (library.Named, error)
	ServicePoint(ctx context.Context, id string) (library.Named, error)
	Group(ctx context.Context, id string) (library.Group, error)
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
}

// referencesAtOnce bounds the fetches of reference records for one page.
const referencesAtOnce = 8

// links are the parts of a stored loan that name other records.
type links struct {
	UserID         string `json:"userId"`
	ItemID         string `json:"itemId"`
	LoanPolicyID   string `json:"loanPolicyId"`
	ServicePointID string `json:"checkoutServicePointId"`
	GroupID        string `json:"patronGroupIdAtCheckout"`
}

// RenderPage returns the loans as clients get them, in the same order. It fetches the records
// that they refer to in bulk, and leaves out the part of a missing one. Faults are those of
// records except NotFound.
func RenderPage(ctx context.Context, records Records, loans []json.RawMessage) ([]json.RawMessage, error) {
	all := make([]links, len(loans))
	for i, loan := range loans {
		if err := json.Unmarshal(loan, &all[i]); err != nil {
			return nil, fmt.Errorf("a stored loan cannot be read: %w", err)
		}
	}
	s := &related{}
	if err := s.fetchAll(ctx, records, all); err != nil {
		return nil, err
	}
	views := make([]json.RawMessage, len(loans))
	for i, loan := range loans {
		view, err := Render(loan, s.pickKnown(all[i]))
		if err != nil {
			return nil, err
		}
		views[i] = view
	}
	return views, nil
}

// RenderOne is RenderPage for one loan.
func RenderOne(ctx context.Context, records Records, loan json.RawMessage) (json.RawMessage, error) {
	views, err := RenderPage(ctx, records, []json.RawMessage{loan})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// related are the records that the loans of a page refer to, by id.
type related struct {
	users     map[string]library.User
	items     map[string]library.Item
	holdings  map[string]library.Holdings
	instances map[string]library.Instance

	locations     map[string]library.Location
	materials     map[string]library.Named
	servicePoints map[string]library.Named
	groups        map[string]library.Group
	policies      map[string]policy.LoanPolicy
}

// pickKnown picks the records of one loan.
func (s *related) pickKnown(l links) Known {
	item := s.items[l.ItemID]
	holdings := s.holdings[item.HoldingsRecordID]
	return Known{
		Copy: library.Copy{
			Item: item, Holdings: holdings, Instance: s.instances[holdings.InstanceID],
			Location: s.locations[item.EffectiveLocationID], Material: s.materials[item.MaterialTypeID],
		},
		Destination: s.servicePoints[item.InTransitDestinationServicePointID],
		User:        s.users[l.UserID], Group: s.groups[l.GroupID],
		Policy: s.policies[l.LoanPolicyID], ServicePoint: s.servicePoints[l.ServicePointID],
	}
}

// fetchAll fetches everything in three rounds: patrons and items, then holdings, then
// instances and reference records.
func (s *related) fetchAll(ctx context.Context, r Records, loans []links) (err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.users, err = fetchByID(gctx, r.Users, collectIDs(loans, func(l links) string { return l.UserID }), func(u library.User) string { return u.ID })
		return err
	})
	g.Go(func() (err error) {
		s.items, err = fetchByID(gctx, r.Items, collectIDs(loans, func(l links) string { return l.ItemID }), func(i library.Item) string { return i.ID })
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	items := slices.Collect(maps.Values(s.items))
	holdingsIDs := collectIDs(items, func(i library.Item) string { return i.HoldingsRecordID })
	s.holdings, err = fetchByID(ctx, r.HoldingsRecords, holdingsIDs, func(h library.Holdings) string { return h.ID })
	if err != nil {
		return err
	}
	instanceIDs := collectIDs(slices.Collect(maps.Values(s.holdings)), func(h library.Holdings) string { return h.InstanceID })
	s.instances, err = fetchByID(ctx, r.Instances, instanceIDs, func(i library.Instance) string { return i.ID })
	if err != nil {
		return err
	}
	return s.fetchReferences(ctx, r, loans, items)
}

func (s *related) fetchReferences(ctx context.Context, r Records, loans []links, items []library.Item) error {
	points := append(
		collectIDs(loans, func(l links) string { return l.ServicePointID }),
		collectIDs(items, func(i library.Item) string { return i.InTransitDestinationServicePointID })...,
	)
	g, ctx := errgroup.WithContext(ctx)
	startFetch(ctx, g, &s.locations, r.Location, collectIDs(items, func(i library.Item) string { return i.EffectiveLocationID }))
	startFetch(ctx, g, &s.materials, r.MaterialType, collectIDs(items, func(i library.Item) string { return i.MaterialTypeID }))
	startFetch(ctx, g, &s.servicePoints, r.ServicePoint, points)
	startFetch(ctx, g, &s.groups, r.Group, collectIDs(loans, func(l links) string { return l.GroupID }))
	startFetch(ctx, g, &s.policies, r.LoanPolicy, collectIDs(loans, func(l links) string { return l.LoanPolicyID }))
	return g.Wait()
}

// startFetch starts to fetch reference records, of which a page names few.
func startFetch[T any](ctx context.Context, g *errgroup.Group, into *map[string]T, fetch func(context.Context, string) (T, error), ids []string) {
	g.Go(func() (err error) {
		*into, err = fetchEach(ctx, fetch, ids)
		return err
	})
}

// collectIDs returns the distinct ids of the records, without "".
func collectIDs[T any](records []T, idOf func(T) string) []string {
	seen := map[string]bool{"": true}
	var found []string
	for _, record := range records {
		if id := idOf(record); !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	return found
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
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(referencesAtOnce)
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
