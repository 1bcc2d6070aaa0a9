package library

import (
	"context"
	"errors"
	"fmt"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// ReadRules returns the tenant's circulation rules. Fault: Internal for rules that are blank or do
// not compile.
func ReadRules(ctx context.Context, records Records) (*policy.Rules, error) {
	found, err := records.Rules(ctx)
	if syntax, ok := errors.AsType[*policy.SyntaxError](err); ok {
		return nil, fault.Wrap(err, fault.Internal, "%s", syntax.Message)
	}
	return found, err
}

// Matching looks up what the circulation rules choose.
type Matching struct{ Records Records }

// RulesFor returns the tenant's circulation rules, and c completed with the library, campus and
// institution of its location. A location without a record belongs to none, as at a check-out.
// Fault: that of ReadRules.
func (m Matching) RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error) {
	rules, err := ReadRules(ctx, m.Records)
	if err != nil {
		return nil, c, err
	}
	location, _, err := fault.Found(m.Records.Location(ctx, c.Location))
	if err != nil {
		return nil, c, fmt.Errorf("finding the location: %w", err)
	}
	c.Library, c.Campus, c.Institution = location.LibraryID, location.CampusID, location.InstitutionID
	return rules, c, nil
}

// ReadSchedule returns the fixed due date schedule that a loan policy names. A policy that names
// none has the zero schedule.
func ReadSchedule(ctx context.Context, records Records, id, policyID string) (policy.FixedSchedule, error) {
	if id == "" {
		return policy.FixedSchedule{}, nil
	}
	schedule, err := records.FixedSchedule(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.Internal, "Fixed due date schedule %s of the loan policy %s could not be found", id, policyID)
	}
	return schedule, err
}
