package integration_test

import (
	"testing"

	"checkoutlock/integration-tests/stack"
)

// What FOLIO does after a check-out must not keep it from happening. Reminders are
// not sent and events not delivered here, so this is as much of it as there is.
func TestScenarios_AfterTheCheckOut(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 9)
	ids := p.addPoliciesWithRules(t, map[string]record{"Week": {"loansPolicy": rollingPeriod(1, "Weeks")}})
	week := func(t *testing.T, s *stage) {
		t.Helper()
		s.useItemOf(t, "Week")
	}
	p.runScenarios(t, ids, []scenario{
		{
			name: "the loan names the fine policy of its rule, which may bring reminders", folio: "check-out with a reminder fee policy",
			prepare: week, wantLoan: record{"overdueFinePolicyId": unstoredPolicyID, "lostItemPolicyId": unstoredPolicyID},
		},
		{
			name: "an item is lent although nobody takes the event, which is kept", folio: "event publishing fails and is ignored",
			prepare: week,
			check: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				if got := s.readState(t, s.userID, s.barcode); got != lentOnce {
					t.Errorf("left %+v, want %+v", got, lentOnce)
				}
			},
		},
	})
}
