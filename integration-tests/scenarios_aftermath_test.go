package integration_test

import (
	"testing"

	"checkoutlock/integration-tests/stack"
)

// What FOLIO does after a check-out must not keep it from happening. Reminders are
// not sent and events not delivered here, so this is as much of it as there is.
func TestScenariosOfWhatFollowsACheckOut(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 9)
	ids := p.lendBy(t, map[string]record{"Week": {"loansPolicy": rolling(1, "Weeks")}})
	week := func(t *testing.T, s *stage) {
		t.Helper()
		s.of(t, "Week")
	}
	p.play(t, ids, []scenario{
		{
			name: "the loan names the fine policy of its rule, which may bring reminders", folio: "check-out with a reminder fee policy",
			given: week, loan: record{"overdueFinePolicyId": unstoredPolicyID, "lostItemPolicyId": unstoredPolicyID},
		},
		{
			name: "an item is lent although nobody takes the event, which is kept", folio: "event publishing fails and is ignored",
			given: week,
			after: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				if got := s.state(t, s.userID, s.barcode); got != lentOnce {
					t.Errorf("left %+v, want %+v", got, lentOnce)
				}
			},
		},
	})
}
