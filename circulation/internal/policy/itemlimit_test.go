package policy_test

import (
	"testing"

	"checkoutlock/circulation/internal/policy"
)

func TestItemLimitFor(t *testing.T) {
	t.Parallel()
	const start = "Patron has reached maximum limit of 3 items for "
	tests := map[string]struct {
		rule          policy.Conditions
		limited       bool
		message, code string
	}{
		"fallback or location": {policy.Conditions{}, false, "", ""},
		"g":                    {policy.Conditions{PatronGroup: true}, false, "", ""},
		"m":                    {policy.Conditions{MaterialType: true}, true, start + "material type", "ITEM_LIMIT_MATERIAL_TYPE"},
		"t":                    {policy.Conditions{LoanType: true}, true, start + "loan type", "ITEM_LIMIT_LOAN_TYPE"},
		"m+t": {
			policy.Conditions{MaterialType: true, LoanType: true},
			true,
			start + "combination of material type and loan type", "ITEM_LIMIT_MATERIAL_TYPE_LOAN_TYPE",
		},
		"g+m": {
			policy.Conditions{PatronGroup: true, MaterialType: true},
			true,
			start + "combination of patron group and material type", "ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE",
		},
		"g+t": {
			policy.Conditions{PatronGroup: true, LoanType: true},
			true,
			start + "combination of patron group and loan type", "ITEM_LIMIT_PATRON_GROUP_LOAN_TYPE",
		},
		"g+m+t": {
			policy.Conditions{PatronGroup: true, MaterialType: true, LoanType: true},
			true,
			start + "combination of patron group, material type and loan type", "ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, limited := policy.LoanPolicy{ItemLimit: 3}.ItemLimitFor(tt.rule)
			var want policy.ItemLimit
			if tt.limited {
				want = policy.ItemLimit{
					Max: 3, ByMaterialType: tt.rule.MaterialType, ByLoanType: tt.rule.LoanType,
					Message: tt.message, Code: tt.code,
				}
			}
			if limited != tt.limited || got != want {
				t.Errorf("got %+v, %t, want %+v, %t", got, limited, want, tt.limited)
			}
			if unlimited, ok := (policy.LoanPolicy{}).ItemLimitFor(tt.rule); ok {
				t.Errorf("without a limit: got %+v, want none", unlimited)
			}
		})
	}
}

func TestItemLimit_Reached(t *testing.T) {
	t.Parallel()
	limit := policy.ItemLimit{Max: 1}
	for loans, want := range map[int]bool{0: false, 1: true, 2: true} {
		if got := limit.IsReached(loans); got != want {
			t.Errorf("%d loans of 1: got reached %t, want %t", loans, got, want)
		}
	}
}
