package admin

import (
	"context"
	"errors"
	"strings"

	"checkoutlock/circulation/internal/policy"
)

// LoanPolicies reads loan policies.
type LoanPolicies interface {
	// LoanPolicyRecords returns those of the ids that are of loan policies that can be read.
	LoanPolicyRecords(ctx context.Context, ids []string) ([]policy.LoanPolicy, error)
}

// RulesReview is the tenant's circulation rules and what is wrong with them.
type RulesReview struct {
	Text      string
	Fault     *policy.SyntaxError // of rules that cannot be used; nil for others
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
	review.Uncounted, err = FindUncountedLimits(ctx, s.storage, review.Text)
	if errors.As(err, &review.Fault) {
		err = nil
	}
	return review, err
}

// FindUncountedLimits returns the rules whose item limit counts nothing. The error is a
// *policy.SyntaxError if the text does not compile.
func FindUncountedLimits(ctx context.Context, policies LoanPolicies, text string) ([]policy.UncountedLimit, error) {
	rules, err := policy.Compile(text)
	if err != nil {
		return nil, err
	}
	named := rules.PolicyIDs(policy.KindLoan)
	ids := make([]string, len(named))
	for i, ref := range named {
		ids[i] = ref.ID
	}
	found, err := policies.LoanPolicyRecords(ctx, ids)
	if err != nil {
		return nil, err
	}
	return rules.FindUncountedLimits(found), nil
}
