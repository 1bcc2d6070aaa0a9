package library

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Facts are the records that a check-out or a renewal is judged by. A record that does not exist is
// empty.
type Facts struct {
	User            User
	UserFound       bool
	Group           Group
	ManualBlocks    []ManualBlock
	AutomatedBlocks []AutomatedBlock

	Copy      Copy
	ItemFound bool
	Queue     Queue

	Rules *policy.Rules // nil before the rules were read
}

// Queue is the queue of requests that an item is in: its own, or with title-level requests that of
// its instance.
type Queue struct {
	TitleLevel bool // requests for titles are switched on
	Requests   []schemas.QueuedRequest
}

// ReadNamed reads what the barcodes name, and whether requests for titles are switched on. If it
// fails, f has what was found until then.
func (f *Facts) ReadNamed(ctx context.Context, records Records, userBarcode, itemBarcode string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		f.User, f.UserFound, err = FindByBarcode(ctx, userBarcode, records.UserByBarcode)
		return err
	})
	g.Go(func() (err error) {
		f.Copy.Item, f.ItemFound, err = FindByBarcode(ctx, itemBarcode, records.ItemByBarcode)
		return err
	})
	g.Go(func() (err error) {
		f.Queue.TitleLevel, err = records.TitleLevelRequests(ctx)
		return err
	})
	return g.Wait()
}

// FindByBarcode calls find for a barcode that a record can have.
func FindByBarcode[T any](ctx context.Context, barcode string, find func(context.Context, string) (T, error)) (T, bool, error) {
	if !IsPossibleBarcode(barcode) {
		var none T
		return none, false, nil
	}
	return fault.Found(find(ctx, barcode))
}

// ReadPatron reads the group and the blocks of the patron.
func (f *Facts) ReadPatron(ctx context.Context, patrons Patrons) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		f.Group, err = findNamed(ctx, f.User.PatronGroup, patrons.Group)
		return err
	})
	g.Go(func() (err error) {
		f.ManualBlocks, err = patrons.ManualBlocks(ctx, f.User.ID)
		return err
	})
	g.Go(func() (err error) {
		f.AutomatedBlocks, err = patrons.AutomatedBlocks(ctx, f.User.ID)
		return err
	})
	return g.Wait()
}

// findNamed returns the record that another one names with id; an empty id names none.
func findNamed[T any](ctx context.Context, id string, find func(context.Context, string) (T, error)) (record T, err error) {
	if id == "" {
		return record, nil
	}
	record, _, err = fault.Found(find(ctx, id))
	return record, err
}

// ReadCopy reads the records that the item belongs to, and its queue.
func (f *Facts) ReadCopy(ctx context.Context, copies Copies) (err error) {
	f.Copy, f.Queue, err = ReadCopy(ctx, copies, f.Copy.Item, f.Queue.TitleLevel)
	return err
}

// ReadCopy returns the item with the records that it belongs to, and its queue. An item without an
// instance has a queue of its own.
func ReadCopy(ctx context.Context, copies Copies, item Item, titleLevel bool) (Copy, Queue, error) {
	c, q := Copy{Item: item}, Queue{TitleLevel: titleLevel}
	g, ctx := errgroup.WithContext(ctx)
	readItemQueue := func() (err error) {
		q.Requests, err = copies.ItemRequests(ctx, item.ID)
		return err
	}
	if !titleLevel {
		g.Go(readItemQueue)
	}
	g.Go(func() (err error) {
		if c.Holdings, _, err = fault.Found(copies.Holdings(ctx, item.HoldingsRecordID)); err != nil {
			return err
		}
		instanceID := c.Holdings.InstanceID
		switch {
		case titleLevel && instanceID == "":
			g.Go(readItemQueue)
		case titleLevel:
			g.Go(func() (err error) {
				q.Requests, err = copies.TitleRequests(ctx, instanceID)
				return err
			})
		}
		c.Instance, err = findNamed(ctx, instanceID, copies.Instance)
		return err
	})
	g.Go(func() (err error) {
		c.Location, err = findNamed(ctx, item.EffectiveLocationID, copies.Location)
		return err
	})
	g.Go(func() (err error) {
		c.Material, err = findNamed(ctx, item.MaterialTypeID, copies.MaterialType)
		return err
	})
	err := g.Wait()
	return c, q, err
}

// FindFirst returns the first request that the copy can fill; false if there is none.
func (q Queue) FindFirst(c Copy) (schemas.QueuedRequest, bool) {
	return schemas.FirstFilledBy(q.Requests, c.Item.ID, c.Holdings.InstanceID, q.TitleLevel)
}

// HasHold reports whether a hold that is not yet filled waits for the copy, besides the request
// with the id filled.
func (q Queue) HasHold(c Copy, filled string) bool {
	for _, r := range q.Requests {
		if r.ID != filled && r.RequestType == "Hold" && r.Status == schemas.RequestNotYetFilled &&
			r.FilledBy(c.Item.ID, c.Holdings.InstanceID, q.TitleLevel) {
			return true
		}
	}
	return false
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
