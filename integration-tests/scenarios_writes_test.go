package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"checkoutlock/integration-tests/stack"
)

// refuseWrites has the database refuse rows of a table that mention an id.
func (p *pair) refuseWrites(t *testing.T, table, id string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	refuse := p.tableName("refuse_" + table)
	for _, sql := range []string{
		`CREATE FUNCTION ` + refuse + `() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF strpos(NEW::text, TG_ARGV[0]) > 0 THEN RAISE EXCEPTION 'refused by a test'; END IF;
				RETURN NULL;
			END $$`,
		fmt.Sprintf(`CREATE TRIGGER refuse AFTER INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s('%s')`, p.tableName(table), refuse, id),
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// FOLIO answers 200 with the loan when the record of the session could not be
// saved. Here all of a check-out is one transaction: whichever part cannot be
// written, nothing is lent.
func TestScenarios_FailedWrites(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: shortWait}, 9)
	for _, table := range []string{"loan", "item", "request", "patron_action_session", "outbox"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s := &stage{pair: p}
			s.userID, s.userBarcode = p.addPatron(t)
			queueFirstRequest("Hold", "Item", true)(t, s)
			somebody, _ := p.addPatron(t)
			s.queueRequest(t, somebody, "Hold", "Item", s.itemID, 2)
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
				t.Errorf("left\n%s\nwhere was\n%s", after, before)
			}
		})
	}
}

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
