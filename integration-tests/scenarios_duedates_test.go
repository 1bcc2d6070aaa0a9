package integration_test

import (
	"testing"
	"time"
)

func TestScenarios_DueDates(t *testing.T) {
	t.Parallel()
	const lent = "2026-03-01T10:00:00.000Z"
	p := joinSharedPair(t, 9)
	term := p.addSchedule(t, "Terms", "2026-01-01T00:00:00Z", "2026-06-30T23:59:59Z", "2026-07-15T22:00:00Z")
	always := p.addSchedule(t, "For ever", "2020-01-01T00:00:00Z", "2999-12-31T00:00:00Z", "3000-01-31T00:00:00Z")
	ids := p.addPoliciesWithRules(t, map[string]record{
		"Term":             {"loansPolicy": record{"profileId": "Fixed", "fixedDueDateScheduleId": term}},
		"For ever":         {"loansPolicy": record{"profileId": "Fixed", "fixedDueDateScheduleId": always}},
		"Year within term": {"loansPolicy": setFields(rollingPeriod(12, "Months"), record{"fixedDueDateScheduleId": term})},
		"Week within term": {"loansPolicy": setFields(rollingPeriod(1, "Weeks"), record{"fixedDueDateScheduleId": term})},
		"Shorter while wanted": {"loansPolicy": rollingPeriod(3, "Weeks"), "requestManagement": record{
			"holds": record{"alternateCheckoutLoanPeriod": record{"duration": 1, "intervalId": "Weeks"}},
		}},
		"Periodless":  {"loansPolicy": record{"profileId": "Rolling"}},
		"Profileless": {"loansPolicy": record{"period": record{"duration": 1, "intervalId": "Days"}}},
	})
	expires := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	at := func(policy string, more ...record) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) {
			t.Helper()
			s.useItemOf(t, policy)
			setFields(s.extra, append([]record{{"loanDate": lent}}, more...)...)
		}
	}
	const about = " (loanPolicyId={policy}) (loanPolicyName="
	p.runScenarios(t, ids, []scenario{
		{
			name: "a fixed loan is due on the schedule's date", folio: "check-out with a fixed due date policy",
			prepare: at("Term"), wantLoan: record{"dueDate": "2026-07-15T22:00:00.000Z", "loanPolicy.name": "Term"},
		},
		{
			name: "a rolling loan ends with the term", folio: "check-out with a rolling policy limited by due dates",
			prepare: at("Year within term"), wantLoan: record{"dueDate": "2026-07-15T22:00:00.000Z"},
		},
		{
			name:    "a rolling loan that ends before the term keeps its period",
			folio:   "check-out with a rolling policy limited by due dates",
			prepare: at("Week within term"), wantLoan: record{"dueDate": "2026-03-08T10:00:00.000Z"},
		},
		{
			name: "forceLoanPolicyId wins over the rules", folio: "check-out with forceLoanPolicyId",
			prepare: func(_ *testing.T, s *stage) {
				setFields(s.extra, record{"loanDate": lent, "forceLoanPolicyId": ids["Term"]})
			},
			permissions: []string{mayLimit},
			wantLoan:    record{"dueDate": "2026-07-15T22:00:00.000Z", "loanPolicyId": ids["Term"], "loanPolicy.name": "Term"},
		},
		{
			name: "forceLoanPolicyId without permission", folio: "check-out with forceLoanPolicyId",
			prepare: func(_ *testing.T, s *stage) {
				setFields(s.extra, record{"loanDate": lent, "forceLoanPolicyId": ids["Term"]})
				s.setPlaceholder("policy", ids["Term"])
			},
			wantErrors: "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] (forceLoanPolicyId={policy}) " +
				"{itemLimitBlock: " + mayLimit + "}",
		},
		{
			name: "without requests the usual period counts", folio: "alternate period",
			prepare: at("Shorter while wanted"), wantLoan: record{"dueDate": "2026-03-22T10:00:00.000Z"},
		},
		{
			name: "a hold after the borrower's own shortens the loan", folio: "alternate period",
			prepare: func(t *testing.T, s *stage) {
				at("Shorter while wanted")(t, s)
				other, _ := s.addPatron(t)
				s.addRequest(t, s.itemID, s.userID, 1)
				s.addRequest(t, s.itemID, other, 2)
			},
			wantLoan: record{"dueDate": "2026-03-08T10:00:00.000Z"},
		},
		{
			name: "a recall after the borrower's own hold does not", folio: "alternate period",
			prepare: func(t *testing.T, s *stage) {
				at("Shorter while wanted")(t, s)
				other, _ := s.addPatron(t)
				s.addRequest(t, s.itemID, s.userID, 1)
				s.addRequest(t, s.itemID, other, 2, record{"requestType": "Recall"})
			},
			wantLoan: record{"dueDate": "2026-03-22T10:00:00.000Z"},
		},
		{
			name: "a fixed loan ends with the patron's membership too", folio: "due date cut off at the patron's expiration",
			prepare: func(t *testing.T, s *stage) {
				s.usePatron(t, record{"expirationDate": expires.Format(time.RFC3339)})
				at("For ever")(t, s)
			},
			wantLoan: record{"dueDate": expires.Format("2006-01-02T15:04:05.000Z")},
		},
		{
			name: "a loan date outside the schedule is refused", folio: "fixed due date policy, no range for the loan date",
			prepare:    at("Term", record{"loanDate": "2026-08-01T00:00:00Z"}),
			wantErrors: "loan date falls outside of the date ranges in the loan policy [NO_DUE_DATE]" + about + "Term)",
		},
		{
			name: "a policy without a period gives no due date", folio: "loan period not recognised",
			prepare: at("Periodless"), wantErrors: "the loan period in the loan policy is not recognised [NO_DUE_DATE]" + about +
				"Periodless)",
		},
		{
			name: "a policy without a profile gives no due date", folio: "profile not recognised",
			prepare: at("Profileless"), wantErrors: `profile "" in the loan policy is not recognised [NO_DUE_DATE]` + about +
				"Profileless)",
		},
	})
}
