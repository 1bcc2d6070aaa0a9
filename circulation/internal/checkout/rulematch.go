package checkout

import (
	"context"
	"fmt"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// RulesFor returns the tenant's circulation rules and c completed with the
// library, campus and institution of its location. As at a check-out, a location
// that has no record belongs to none. Fault: Internal for rules that are blank or
// do not compile.
func (s *Service) RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error) {
	rules, err := s.compiledRules(ctx)
	if err != nil {
		return nil, c, err
	}
	location, _, err := fault.Found(s.Library.Location(ctx, c.Location))
	if err != nil {
		return nil, c, fmt.Errorf("finding the location: %w", err)
	}
	c.Library, c.Campus, c.Institution = location.LibraryID, location.CampusID, location.InstitutionID
	return rules, c, nil
}
