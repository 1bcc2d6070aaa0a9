package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// refuseWrites makes the database refuse rows of a table that contain an id.
func (p *pair) refuseWrites(t *testing.T, table, id string) {
	t.Helper()
	refuse := p.tableName("refuse_" + table)
	execSQL(t, p.databaseURL,
		`CREATE FUNCTION `+refuse+`() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF strpos(NEW::text, TG_ARGV[0]) > 0 THEN RAISE EXCEPTION 'refused by a test'; END IF;
				RETURN NULL;
			END $$`,
		fmt.Sprintf(`CREATE TRIGGER refuse AFTER INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s('%s')`,
			p.tableName(table), refuse, id),
	)
}

// FOLIO answers 200 with the loan if the record of the session cannot be saved. Here a
// check-out is one transaction: if any part fails, nothing is lent.
func TestScenarios_FailedWrites(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: shortWait}, 9)
	for _, table := range []string{"loan", "item", "request", "patron_action_session", "outbox"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s := &stage{pair: p}
			s.userID, s.userBarcode = p.addPatron(t)
			queueFirstRequest("Hold", "Item", true)(t, s)
			other, _ := p.addPatron(t)
			s.queueRequest(t, other, "Hold", "Item", s.itemID, 2)
			before := s.readTraces(t)
			refused := s.itemID
			if table == "patron_action_session" {
				refused = s.userID
			}
			p.refuseWrites(t, table, refused)
			a := p.lendBook(t, 0, s.barcode, s.userBarcode)
			if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), "The item was not lent") {
				t.Errorf("got %d %s, want 500: the item was not lent", a.Status, a.Body)
			}
			if after := s.readTraces(t); after != before {
				t.Errorf("it left\n%s\nwant\n%s", after, before)
			}
		})
	}
}

// In FOLIO, steps after a check-out cannot fail it. Here reminders are not sent and events
// are not delivered, so few of these steps exist.
func TestScenarios_AfterTheCheckOut(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	ids := p.addPoliciesWithRules(t, map[string]record{"Week": {"loansPolicy": rollingPeriod(1, "Weeks")}})
	week := func(t *testing.T, s *stage) {
		t.Helper()
		s.useItemOf(t, "Week")
	}
	p.runScenarios(t, ids, []scenario{
		{
			name: "the loan names its rule's fine policy", folio: "check-out with a reminder fee policy",
			prepare: week, wantLoan: record{
				"overdueFinePolicyId": stack.OverdueFinePolicyID, "lostItemPolicyId": stack.LostItemPolicyID,
			},
			check: func(t *testing.T, s *stage, loan record) {
				t.Helper()
				read := s.readLoan(t, loan)
				got := fmt.Sprint(read["overdueFinePolicy"], read["lostItemPolicy"])
				if got != "map[name:No fines] map[name:No fees]" {
					t.Errorf("the loan names %s", got)
				}
			},
		},
		{
			name: "an undelivered event is kept", folio: "event publishing fails and is ignored",
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
