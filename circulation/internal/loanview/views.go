package loanview

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// Records finds the records around loans. The methods with many ids return those
// that exist; the others a NotFound fault for a record that does not.
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

// Page returns the loans as clients are shown them, in the same order. It asks
// for the records around them in bulk; one that is gone leaves its part out. A
// fault is one of records other than NotFound.
func Page(ctx context.Context, records Records, loans []json.RawMessage) ([]json.RawMessage, error) {
	all := make([]links, len(loans))
	for i, loan := range loans {
		if err := json.Unmarshal(loan, &all[i]); err != nil {
			return nil, fmt.Errorf("a stored loan cannot be read: %w", err)
		}
	}
	s := &surroundings{}
	if err := s.fetch(ctx, records, all); err != nil {
		return nil, err
	}
	views := make([]json.RawMessage, len(loans))
	for i, loan := range loans {
		view, err := Render(loan, s.known(all[i]))
		if err != nil {
			return nil, err
		}
		views[i] = view
	}
	return views, nil
}

// One is Page for one loan.
func One(ctx context.Context, records Records, loan json.RawMessage) (json.RawMessage, error) {
	views, err := Page(ctx, records, []json.RawMessage{loan})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// surroundings are the records around the loans of a page, by id.
type surroundings struct {
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

// known picks what is around one loan.
func (s *surroundings) known(l links) Known {
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

// fetch gets everything in three rounds: patrons and items, then holdings, then
// instances and reference records.
func (s *surroundings) fetch(ctx context.Context, r Records, loans []links) (err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.users, err = byID(gctx, r.Users, ids(loans, func(l links) string { return l.UserID }), func(u library.User) string { return u.ID })
		return err
	})
	g.Go(func() (err error) {
		s.items, err = byID(gctx, r.Items, ids(loans, func(l links) string { return l.ItemID }), func(i library.Item) string { return i.ID })
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	holdingsIDs := ids(values(s.items), func(i library.Item) string { return i.HoldingsRecordID })
	s.holdings, err = byID(ctx, r.HoldingsRecords, holdingsIDs, func(h library.Holdings) string { return h.ID })
	if err != nil {
		return err
	}
	instanceIDs := ids(values(s.holdings), func(h library.Holdings) string { return h.InstanceID })
	s.instances, err = byID(ctx, r.Instances, instanceIDs, func(i library.Instance) string { return i.ID })
	if err != nil {
		return err
	}
	return s.fetchReferences(ctx, r, loans)
}

func (s *surroundings) fetchReferences(ctx context.Context, r Records, loans []links) (err error) {
	items := values(s.items)
	points := append(
		ids(loans, func(l links) string { return l.ServicePointID }),
		ids(items, func(i library.Item) string { return i.InTransitDestinationServicePointID })...,
	)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.locations, err = each(ctx, r.Location, ids(items, func(i library.Item) string { return i.EffectiveLocationID }))
		return err
	})
	g.Go(func() (err error) {
		s.materials, err = each(ctx, r.MaterialType, ids(items, func(i library.Item) string { return i.MaterialTypeID }))
		return err
	})
	g.Go(func() (err error) {
		s.servicePoints, err = each(ctx, r.ServicePoint, points)
		return err
	})
	g.Go(func() (err error) {
		s.groups, err = each(ctx, r.Group, ids(loans, func(l links) string { return l.GroupID }))
		return err
	})
	g.Go(func() (err error) {
		s.policies, err = each(ctx, r.LoanPolicy, ids(loans, func(l links) string { return l.LoanPolicyID }))
		return err
	})
	return g.Wait()
}

// ids returns the distinct ids that of finds in list, without "".
func ids[T any](list []T, of func(T) string) []string {
	seen := map[string]bool{"": true}
	var found []string
	for _, record := range list {
		if id := of(record); !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	return found
}

func values[T any](m map[string]T) []T {
	list := make([]T, 0, len(m))
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// byID fetches records in bulk.
func byID[T any](ctx context.Context, fetch func(context.Context, []string) ([]T, error), ids []string, idOf func(T) string) (map[string]T, error) {
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

// each fetches reference records, of which a page names few.
func each[T any](ctx context.Context, fetch func(context.Context, string) (T, error), ids []string) (map[string]T, error) {
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
