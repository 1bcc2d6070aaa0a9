package records

import (
	"context"
	"fmt"

	"checkoutlock/schemas/fault"
)

// LoanPolicy holds loan periods and the item limit (mod-circulation-storage).
var LoanPolicy = Type{
	Name: "loan policy", Path: "/loan-policy-storage/loan-policies", Collection: "loanPolicies", Table: "loan_policy", Schema: "loan-policy",
	Permission: "circulation-storage.loan-policies", Interface: "loan-policy-storage 2.4", Upsert: true, Prepare: prepareLoanPolicy,
	Indexes: newIndexes(fields{
		Text: {"name", "description", "loansPolicy.profileId"}, Boolean: {"loanable", "renewable"},
		Number: {"loansPolicy.itemLimit"},
	}, "loansPolicy.fixedDueDateScheduleId", "renewalsPolicy.alternateFixedDueDateScheduleId"),
	Unique: uniqueFields("loan_policy", "name"),
	References: []Reference{
		newReference("loan_policy", "loansPolicy.fixedDueDateScheduleId", "fixed_due_date_schedule"),
		newReference("loan_policy", "renewalsPolicy.alternateFixedDueDateScheduleId", "fixed_due_date_schedule"),
	},
}

// prepareLoanPolicy refuses a policy whose parts contradict each other, by the rules of
// mod-circulation-storage and in its words.
func prepareLoanPolicy(_ context.Context, _ Reader, w Write) error {
	const schedule, alternate = "loansPolicy.fixedDueDateScheduleId", "renewalsPolicy.alternateFixedDueDateScheduleId"
	policy := w.Record
	has := func(path string) bool { return policy.value(path) != nil }
	is := func(path string) bool { return policy.value(path) == true }
	shown := func(path string) string { return fault.Shown(policy.value(path)) }

	fixed := policy.Text("loansPolicy.profileId") == "Fixed"
	renewsDifferently := is("renewable") && is("renewalsPolicy.differentPeriod")
	var wrong fault.List
	refuse := func(path, key, format string, args ...any) {
		wrong = append(wrong, fault.StorageDetail(fmt.Sprintf(format, args...), fault.Param(key, shown(path))))
	}
	if has("renewalsPolicy") && (renewsDifferently && fixed && !has(alternate) || !renewsDifferently && has(alternate)) {
		refuse(alternate, "alternateFixedDueDateScheduleId",
			"Alternate fixed due date cannot be %s if renewable is %s, different period is %s and profile is %s",
			shown(alternate), shown("renewable"), shown("renewalsPolicy.differentPeriod"), shown("loansPolicy.profileId"))
	}
	if has("loansPolicy") && !has(schedule) && (fixed || !is("loanable")) {
		refuse(schedule, "fixedDueDateScheduleId", "Fixed due date cannot be null if loanable is %s and profile is of type fixed", shown("loanable"))
	}
	const holdPeriod, period = "requestManagement.holds.alternateRenewalLoanPeriod", "renewalsPolicy.period"
	if fixed && is("renewable") && is("requestManagement.holds.renewItemsWithRequest") && has(holdPeriod) {
		refuse(holdPeriod, "alternateRenewalLoanPeriod",
			"Alternate Renewal Loan Period for Holds is not allowed for policies with Fixed profile")
	}
	if fixed && renewsDifferently && has(period) {
		refuse(period, "period", "Period in RenewalsPolicy is not allowed for policies with Fixed profile")
	}
	return wrong.Err()
}
