package policy

import (
	"fmt"
	"strings"
)

// UncountedLimit is a rule whose loan policy has an item limit that counts nothing, because the rule
// names neither a material type nor a loan type. See ItemLimitFor.
type UncountedLimit struct {
	Line     int // in the text, counted from 1
	Fallback bool
	Policy   LoanPolicy
}

// FindUncountedLimits returns these rules in the order of the text. It compares the policies' ids
// without regard to case.
func (r *Rules) FindUncountedLimits(policies []LoanPolicy) []UncountedLimit {
	limited := map[string]LoanPolicy{}
	for _, p := range policies {
		if p.ItemLimit > 0 {
			limited[strings.ToLower(p.ID)] = p
		}
	}
	var found []UncountedLimit
	for _, s := range r.statements {
		if s.policies == nil {
			continue
		}
		p, ok := limited[strings.ToLower(s.policies[KindLoan.index()].ID)]
		if _, counts := p.ItemLimitFor(s.conditions()); ok && !counts {
			found = append(found, UncountedLimit{Line: s.line, Fallback: s.fallback, Policy: p})
		}
	}
	return found
}

// String says what is wrong. It leaves out the policy's name, so that it fits into a header.
func (u UncountedLimit) String() string {
	rule := "the rule"
	if u.Fallback {
		rule = "the fallback"
	}
	return fmt.Sprintf("line %d: the item limit %d of the loan policy %s counts nothing, because %s names neither a material type nor a loan type",
		u.Line, u.Policy.ItemLimit, strings.ToLower(u.Policy.ID), rule)
}
