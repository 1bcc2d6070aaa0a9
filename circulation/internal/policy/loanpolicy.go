package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxItemLimit is the largest item limit that FOLIO's schema of loan policies allows.
const maxItemLimit = 9999

// LoanPolicy is what check-outs and renewals need of a stored loan policy.
type LoanPolicy struct {
	ID        string
	Name      string
	Loanable  bool
	ItemLimit int // 1 to 9999; 0 is unlimited. See ItemLimitFor for when it counts

	// ScheduleID names the fixed due date schedule that DueDate needs: the due dates of the profile
	// Fixed, the limit of the profile Rolling. It is empty if there is none.
	ScheduleID string
	// RenewalScheduleID names the schedule that Renew needs: the one for renewals if the policy has
	// one, else that of its loans.
	RenewalScheduleID string

	profile   string
	period    period
	alternate *period // the period while a hold waits; nil for the usual one
	renewals  renewals
	recalls   recalls
}

// renewals are the terms of a policy's renewals.
type renewals struct {
	allowed    bool
	unlimited  bool
	max        int  // of one loan, unless unlimited
	withHolds  bool // a waiting hold does not prevent a renewal
	origin     string
	separate   *period // the renewals' own period; nil if they have that of the loans
	whileHolds *period // the period while a hold waits; nil for the usual one
}

// ParseLoanPolicy reads a record of FOLIO's /loan-policy-storage/loan-policies. Null counts as
// absent, and unknown fields are ignored. The error names the field that has a value of the wrong
// type or is out of range. An invalid period is not an error here but one of DueDate and Renew, so
// that a check-out can report everything else.
func ParseLoanPolicy(raw []byte) (LoanPolicy, error) {
	var record struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Loanable    bool   `json:"loanable"`
		Renewable   bool   `json:"renewable"`
		LoansPolicy struct {
			ProfileID              string       `json:"profileId"`
			Period                 period       `json:"period"`
			FixedDueDateScheduleID string       `json:"fixedDueDateScheduleId"`
			ItemLimit              *WholeNumber `json:"itemLimit"`
		} `json:"loansPolicy"`
		RenewalsPolicy struct {
			Unlimited                       bool        `json:"unlimited"`
			NumberAllowed                   WholeNumber `json:"numberAllowed"`
			RenewFromID                     string      `json:"renewFromId"`
			DifferentPeriod                 bool        `json:"differentPeriod"`
			Period                          *period     `json:"period"`
			AlternateFixedDueDateScheduleID string      `json:"alternateFixedDueDateScheduleId"`
		} `json:"renewalsPolicy"`
		RequestManagement struct {
			Holds struct {
				AlternateCheckoutLoanPeriod *period `json:"alternateCheckoutLoanPeriod"`
				AlternateRenewalLoanPeriod  *period `json:"alternateRenewalLoanPeriod"`
				RenewItemsWithRequest       bool    `json:"renewItemsWithRequest"`
			} `json:"holds"`
			Recalls recalls `json:"recalls"`
		} `json:"requestManagement"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return LoanPolicy{}, fmt.Errorf("read loan policy: %w", err)
	}
	loans, renewed, holds := record.LoansPolicy, record.RenewalsPolicy, record.RequestManagement.Holds
	p := LoanPolicy{
		ID: record.ID, Name: record.Name, Loanable: record.Loanable,
		ScheduleID: loans.FixedDueDateScheduleID, RenewalScheduleID: loans.FixedDueDateScheduleID,
		profile: loans.ProfileID, period: loans.Period, alternate: holds.AlternateCheckoutLoanPeriod,
		recalls: record.RequestManagement.Recalls,
		renewals: renewals{
			allowed: record.Renewable, unlimited: renewed.Unlimited, max: int(renewed.NumberAllowed), origin: renewed.RenewFromID,
			withHolds: holds.RenewItemsWithRequest, whileHolds: holds.AlternateRenewalLoanPeriod,
		},
	}
	if renewed.DifferentPeriod {
		p.renewals.separate = cmp.Or(renewed.Period, &period{})
		p.RenewalScheduleID = cmp.Or(renewed.AlternateFixedDueDateScheduleID, p.ScheduleID)
	}
	if limit := loans.ItemLimit; limit != nil {
		if *limit < 1 || *limit > maxItemLimit {
			return LoanPolicy{}, fmt.Errorf("read loan policy %q: loansPolicy.itemLimit is %d, allowed are 1 to %d", p.ID, *limit, maxItemLimit)
		}
		p.ItemLimit = int(*limit)
	}
	return p, nil
}

// ItemLimit is the number of items of some type that a patron may have on loan at once.
type ItemLimit struct {
	Max            int  // 1 to 9999
	ByMaterialType bool // only items of the same material type count
	ByLoanType     bool // only items of the same effective loan type count
	// Message and Code are FOLIO's for a check-out that would exceed the limit.
	Message string
	Code    string
}

// IsReached reports whether a patron with so many of the counted items may borrow no other.
func (l ItemLimit) IsReached(openLoans int) bool { return openLoans >= l.Max }

// countedBy has the conditions under which an item limit counts, as FOLIO's message and code name
// them.
var countedBy = map[Conditions]struct{ name, code string }{
	{PatronGroup: true, MaterialType: true, LoanType: true}: {"combination of patron group, material type and loan type", "PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE"},
	{PatronGroup: true, MaterialType: true}:                 {"combination of patron group and material type", "PATRON_GROUP_MATERIAL_TYPE"},
	{PatronGroup: true, LoanType: true}:                     {"combination of patron group and loan type", "PATRON_GROUP_LOAN_TYPE"},
	{MaterialType: true, LoanType: true}:                    {"combination of material type and loan type", "MATERIAL_TYPE_LOAN_TYPE"},
	{MaterialType: true}:                                    {"material type", "MATERIAL_TYPE"},
	{LoanType: true}:                                        {"loan type", "LOAN_TYPE"},
}

// ItemLimitFor returns the limit of the policy under the rule that chose it. It is false if the
// policy has no limit, or if the rule names neither a material type nor a loan type. The patron
// group is in message and code but narrows nothing, because all counted loans are one patron's.
//
// Source: FOLIO's ItemLimitValidator. It too ignores the limit if the fallback, or a rule by patron
// group or location alone, chose the policy.
func (p LoanPolicy) ItemLimitFor(c Conditions) (ItemLimit, bool) {
	counted, counts := countedBy[c]
	if p.ItemLimit == 0 || !counts {
		return ItemLimit{}, false
	}
	return ItemLimit{
		Max:            p.ItemLimit,
		ByMaterialType: c.MaterialType,
		ByLoanType:     c.LoanType,
		Message:        fmt.Sprintf("Patron has reached maximum limit of %d items for %s", p.ItemLimit, counted.name),
		Code:           "ITEM_LIMIT_" + counted.code,
	}, true
}

// RequestPolicy says which types of requests are allowed, and where their items are picked up.
type RequestPolicy struct {
	ID            string              `json:"id"`
	RequestTypes  []string            `json:"requestTypes"`
	ServicePoints map[string][]string `json:"allowedServicePoints"` // by type; all for a missing one
}

// AllowsType reports whether the policy allows Hold, Recall or Page.
func (p RequestPolicy) AllowsType(requestType string) bool {
	return slices.Contains(p.RequestTypes, requestType)
}

// AllowsServicePoint reports whether requests of the type may be picked up at the service point.
func (p RequestPolicy) AllowsServicePoint(requestType, id string) bool {
	allowed, limited := p.ServicePoints[requestType]
	return !limited || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, id) })
}
