package library

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// ReadInto adds a call to the group that reads what belongs to the record with the id.
func ReadInto[T any](ctx context.Context, g *errgroup.Group, to *T, id string, read func(context.Context, string) (T, error)) {
	g.Go(func() (err error) {
		*to, err = read(ctx, id)
		return err
	})
}

// FindInto adds a call to the group that reads a record which need not exist. An empty id, or an
// empty barcode, is that of no record.
func FindInto[T any](ctx context.Context, g *errgroup.Group, to *T, found *bool, id string, find func(context.Context, string) (T, error)) {
	if id == "" {
		return
	}
	g.Go(func() (err error) {
		*to, *found, err = fault.Found(find(ctx, id))
		return err
	})
}

// ReadCopy returns the item with the records that it belongs to, and its queue. An item without an
// instance has a queue of its own.
func ReadCopy(ctx context.Context, copies Copies, item Item, titleLevel bool) (Copy, Queue, error) {
	c, q := Copy{Item: item}, Queue{TitleLevel: titleLevel}
	g, ctx := errgroup.WithContext(ctx)
	FindInto(ctx, g, &c.Location, new(bool), item.EffectiveLocationID, copies.Location)
	FindInto(ctx, g, &c.Material, new(bool), item.MaterialTypeID, copies.MaterialType)
	if !titleLevel {
		ReadInto(ctx, g, &q.Requests, item.ID, copies.ItemRequests)
	}
	g.Go(func() (err error) {
		if c.Holdings, _, err = fault.Found(copies.Holdings(ctx, item.HoldingsRecordID)); err != nil {
			return err
		}
		instanceID := c.Holdings.InstanceID
		FindInto(ctx, g, &c.Instance, new(bool), instanceID, copies.Instance)
		switch {
		case titleLevel && instanceID == "":
			ReadInto(ctx, g, &q.Requests, item.ID, copies.ItemRequests)
		case titleLevel:
			ReadInto(ctx, g, &q.Requests, instanceID, copies.TitleRequests)
		}
		return nil
	})
	err := g.Wait()
	return c, q, err
}

// ReadRules returns the tenant's circulation rules. Fault: Internal for rules that are blank or do
// not compile.
func ReadRules(ctx context.Context, rules Rules) (*policy.Rules, error) {
	found, err := rules.Rules(ctx)
	var syntax *policy.SyntaxError
	if errors.As(err, &syntax) {
		return nil, fault.Wrap(err, fault.Internal, "%s", syntax.Message)
	}
	return found, err
}

// Matching looks up what the circulation rules choose.
type Matching struct {
	Locations Locations
	Rules     Rules
}

// RulesFor returns the tenant's circulation rules, and c completed with the library, campus and
// institution of its location. A location without a record belongs to none, as at a check-out.
// Fault: that of ReadRules.
func (m Matching) RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error) {
	rules, err := ReadRules(ctx, m.Rules)
	if err != nil {
		return nil, c, err
	}
	location, _, err := fault.Found(m.Locations.Location(ctx, c.Location))
	if err != nil {
		return nil, c, fmt.Errorf("finding the location: %w", err)
	}
	c.Library, c.Campus, c.Institution = location.LibraryID, location.CampusID, location.InstitutionID
	return rules, c, nil
}

// ReadSchedule returns the fixed due date schedule that a loan policy names. A policy that names
// none has the zero schedule.
func ReadSchedule(ctx context.Context, schedules Schedules, id, policyID string) (policy.FixedSchedule, error) {
	if id == "" {
		return policy.FixedSchedule{}, nil
	}
	schedule, err := schedules.FixedSchedule(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.Internal, "Fixed due date schedule %s of the loan policy %s could not be found", id, policyID)
	}
	return schedule, err
}
