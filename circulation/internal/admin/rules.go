package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/related"
)

// Policies reads the policies that rules name.
type Policies interface {
	// LoanPolicyRecords returns those of the ids that are of loan policies that can be read.
	LoanPolicyRecords(ctx context.Context, ids []string) ([]policy.LoanPolicy, error)
	// ExistingPolicies returns those of the ids that are of policies of the kind.
	ExistingPolicies(ctx context.Context, kind policy.Kind, ids []string) ([]string, error)
}

// RulesReview is the tenant's circulation rules and what is wrong with them.
type RulesReview struct {
	Text      string
	Fault     *policy.SyntaxError // of rules that cannot be used; nil for others
	Broken    *policy.SyntaxError // what CheckRules finds in rules that are in use; nil for nothing
	Uncounted []policy.UncountedLimit
}

// Rules reviews the stored rules. Fault: that of a storage that cannot be read.
func (s *Service) Rules(ctx context.Context) (RulesReview, error) {
	stored, err := s.storage.StoredRules(ctx)
	if err != nil {
		return RulesReview{}, err
	}
	review := RulesReview{Text: stored.RulesAsText}
	if strings.TrimSpace(review.Text) == "" {
		return review, nil
	}
	rules, err := policy.Compile(review.Text)
	if errors.As(err, &review.Fault) {
		return review, nil
	}
	if review.Uncounted, err = FindUncountedLimits(ctx, s.storage, rules); err != nil {
		return review, err
	}
	err = CheckRules(ctx, s.storage, rules)
	if errors.As(err, &review.Broken) {
		err = nil
	}
	return review, err
}

// CheckRules returns a *policy.SyntaxError for rules that must not be stored. A line has no policies,
// or names a policy that does not exist. Rules that were written straight to storage may fail.
func CheckRules(ctx context.Context, policies Policies, rules *policy.Rules) error {
	if err := rules.CheckPolicies(); err != nil {
		return err
	}
	for _, kind := range policy.Kinds() {
		named := rules.PolicyIDs(kind)
		existing, err := policies.ExistingPolicies(ctx, kind, listIDs(named))
		if err != nil {
			return err
		}
		for _, ref := range named {
			if !slices.ContainsFunc(existing, func(id string) bool { return strings.EqualFold(id, ref.ID) }) {
				return ref.NewNotFound()
			}
		}
	}
	return nil
}

func listIDs(named []policy.Reference) []string {
	return related.IDs(named, func(r policy.Reference) string { return r.ID })
}

// FindUncountedLimits returns the rules whose item limit counts nothing.
func FindUncountedLimits(ctx context.Context, policies Policies, rules *policy.Rules) ([]policy.UncountedLimit, error) {
	found, err := policies.LoanPolicyRecords(ctx, listIDs(rules.PolicyIDs(policy.KindLoan)))
	if err != nil {
		return nil, err
	}
	return rules.FindUncountedLimits(found), nil
}
