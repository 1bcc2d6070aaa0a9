package policy

import "fmt"

// ItemLimit is how many items of some sort a patron may have on loan at once.
type ItemLimit struct {
	Max            int  // 1 to 9999
	ByMaterialType bool // only items of the same material type count
	ByLoanType     bool // only items of the same effective loan type count
	// Message and Code are FOLIO's for a check-out that would exceed the limit.
	Message string
	Code    string
}

// Reached reports whether a patron who already has so many of the counted items
// may not have one more.
func (l ItemLimit) Reached(openLoans int) bool { return openLoans >= l.Max }

// ItemLimitFor returns the limit of the policy under the rule that chose it. It
// is false if nothing limits: the policy has no limit, or the rule names neither
// a material type nor a loan type. The patron group shows in message and code
// but narrows nothing, since all loans counted are of one patron.
//
// Source: FOLIO's ItemLimitValidator, including that it ignores the limit of a
// policy that a rule by patron group or location alone, or the fallback, chose.
func (p LoanPolicy) ItemLimitFor(c Conditions) (ItemLimit, bool) {
	if p.ItemLimit == 0 {
		return ItemLimit{}, false
	}
	var suffix, code string
	switch c {
	case Conditions{PatronGroup: true, MaterialType: true, LoanType: true}:
		suffix, code = "combination of patron group, material type and loan type", "PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE"
	case Conditions{PatronGroup: true, MaterialType: true}:
		suffix, code = "combination of patron group and material type", "PATRON_GROUP_MATERIAL_TYPE"
	case Conditions{PatronGroup: true, LoanType: true}:
		suffix, code = "combination of patron group and loan type", "PATRON_GROUP_LOAN_TYPE"
	case Conditions{MaterialType: true, LoanType: true}:
		suffix, code = "combination of material type and loan type", "MATERIAL_TYPE_LOAN_TYPE"
	case Conditions{MaterialType: true}:
		suffix, code = "material type", "MATERIAL_TYPE"
	case Conditions{LoanType: true}:
		suffix, code = "loan type", "LOAN_TYPE"
	default:
		return ItemLimit{}, false
	}
	return ItemLimit{
		Max:            p.ItemLimit,
		ByMaterialType: c.MaterialType,
		ByLoanType:     c.LoanType,
		Message:        fmt.Sprintf("Patron has reached maximum limit of %d items for %s", p.ItemLimit, suffix),
		Code:           "ITEM_LIMIT_" + code,
	}, true
}
