package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestMessages_AreThoseOfFolio(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, _, err := h.store.Lease(h.ctx(), uuid.New(), 0); err != nil { // records have events from then on
		t.Fatal(err)
	}
	loan, patron := uuid.New(), uuid.New()
	item := uuid.NewString()
	write := func(statement string, status string) {
		h.exec(statement, loan, fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"status":{"name":%q},
			"loanDate":"2026-01-01T10:00:00.000+00:00","action":"checkedout"}`, loan, patron, item, status))
	}
	write(`INSERT INTO {schema}.loan (id, jsonb) VALUES ($1, $2)`, "Open")
	write(`UPDATE {schema}.loan SET jsonb = $2 WHERE id = $1`, "Closed")
	h.exec(`DELETE FROM {schema}.loan WHERE id = $1`, loan)
	h.exec(`UPDATE {schema}.circulation_rules SET rules = 'priority: t'`)
	h.exec(`INSERT INTO {schema}.circulation_settings (id, jsonb) VALUES ($1, $2)`, uuid.New(), `{"name":"x"}`)
	h.exec(`INSERT INTO {schema}.check_in_operation (id, jsonb) VALUES ($1, $2)`, uuid.New(),
		fmt.Sprintf(`{"itemId":%q,"occurredDateTime":"2026-01-01T10:00:00.000+00:00"}`, item))
	h.exec(`INSERT INTO {schema}.outbox (event_type, payload) VALUES ('ITEM_CHECKED_OUT', '{"userId":"u"}'),
		('ITEM_CHECKED_IN', '{}'), ('ITEM_CHECKED_IN', '{"loanId":"l"}'),
		('REQUEST_CREATED', '{"userId":"u"}')`) // as an earlier build does beside this one
	h.start(h.sink)
	h.awaitNone()
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	type value struct {
		ID, Type, Tenant string
		Timestamp        int64
		Data             struct {
			Old, New *struct {
				ID, UserID, RulesAsText string
				Status                  struct{ Name string }
			}
		}
		EventType, EventPayload string
		EventMetadata           struct{ TenantID string }
	}
	got, ids := map[string]value{}, map[string]bool{}
	for _, m := range h.sink.values {
		var v value
		if err := json.Unmarshal(m.Value, &v); err != nil {
			t.Fatal(err)
		}
		name := strings.Replace(m.Topic, h.id.String(), "T", 1) + " " + v.Type
		got[name], ids[v.ID] = v, true
		if _, err := uuid.Parse(v.ID); err != nil || m.Tenant != h.id {
			t.Errorf("%s: got id %q of tenant %s", name, v.ID, m.Tenant)
		}
		if v.EventType == "" && (v.Tenant != h.id.String() || time.Since(time.UnixMilli(v.Timestamp)).Abs() > time.Hour) {
			t.Errorf("%s: got tenant %q, time %d", name, v.Tenant, v.Timestamp)
		}
		if strings.HasSuffix(m.Topic, "loan") && m.Key != loan.String() {
			t.Errorf("%s: got key %q, want the loan's id", name, m.Key)
		}
	}
	const loans = "folio.T.circulation.loan "
	created, updated, deleted := got[loans+"CREATED"].Data, got[loans+"UPDATED"].Data, got[loans+"DELETED"].Data
	if created.Old != nil || created.New == nil || created.New.Status.Name != "Open" {
		t.Errorf("created: got %+v", created)
	}
	if updated.Old == nil || updated.New == nil || updated.Old.Status.Name != "Open" ||
		updated.Old.UserID != patron.String() || updated.New.Status.Name != "Closed" {
		t.Errorf("updated: got %+v", updated)
	}
	if deleted.Old == nil || deleted.New != nil || deleted.Old.ID != loan.String() {
		t.Errorf("deleted: got %+v", deleted)
	}
	if rules := got["folio.T.circulation.rules UPDATED"].Data.New; rules == nil || rules.RulesAsText != "priority: t" {
		t.Errorf("rules: got %+v", rules)
	}
	for _, name := range []string{
		"folio.T.circulation.check-in CREATED", "folio.T.circulation.circulation-settings CREATED",
	} {
		if got[name].Data.New == nil {
			t.Errorf("there is no %s among %v", name, got)
		}
	}
	if len(h.sink.values) != 11 || len(ids) != 11 { // of check-outs two, and of the check-in of a loan
		t.Errorf("got %d messages with %d ids, want 11 of each", len(h.sink.values), len(ids))
	}
	if in := got["folio.pub-sub.T.ITEM_CHECKED_IN.mod-pubsub-2.20.0 "]; in.EventPayload != `{"loanId": "l"}` {
		t.Errorf("got the check-in %+v, want that of the loan alone", in)
	}
	event := got["folio.pub-sub.T.ITEM_CHECKED_OUT.mod-pubsub-2.20.0 "]
	if event.EventPayload != `{"userId": "u"}` || event.EventMetadata.TenantID != h.id.String() {
		t.Errorf("got %+v", event)
	}
}

// mod-patron-blocks counts a loan as overdue from the end of its policy's grace period on.
func TestMessages_HaveTheGracePeriodOfALoan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	graced, strict := uuid.New(), uuid.New()
	h.exec(`INSERT INTO {schema}.loan_policy (id, jsonb) VALUES
		($1, '{"name":"graced","loansPolicy":{"gracePeriod":{"duration":7,"intervalId":"Days"}}}'),
		($2, '{"name":"strict","loansPolicy":{"gracePeriod":{"duration":0,"intervalId":"Days"}}}')`, graced, strict)
	h.exec(`INSERT INTO {schema}.outbox (event_type, payload)
		SELECT 'ITEM_CHECKED_OUT', jsonb_build_object('loanPolicyId', id) FROM unnest($1::uuid[]) id`,
		[]uuid.UUID{graced, strict})
	h.start(h.sink)
	h.awaitNone()
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	got := map[string]int{}
	for _, m := range h.sink.values {
		var event struct{ EventType, EventPayload string }
		var payload struct{ GracePeriod struct{ IntervalID string } }
		if err := json.Unmarshal(m.Value, &event); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(event.EventPayload), &payload); err != nil {
			t.Fatal(err)
		}
		got[event.EventType+" "+payload.GracePeriod.IntervalID]++
	}
	if got["ITEM_CHECKED_OUT Days"] != 1 || got["ITEM_CHECKED_OUT "] != 1 {
		t.Errorf("got %v, want the period of one of two check-outs", got)
	}
}
