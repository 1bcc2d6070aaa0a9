package events_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// logged returns what the circulation log gets, as "action: description", and "type loan closed" of no loan.
func (h harness) logged(t *testing.T) (list []string) {
	t.Helper()
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	for _, m := range h.sink.values {
		var event struct{ EventPayload string }
		var entry struct {
			LogEventType string
			IsLoanClosed bool
			Payload      struct{ Action, Description string }
		}
		if !strings.Contains(m.Topic, ".LOG_RECORD.") {
			continue
		}
		if err := json.Unmarshal(m.Value, &event); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(event.EventPayload), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.LogEventType == "LOAN" {
			list = append(list, entry.Payload.Action+": "+entry.Payload.Description)
		} else {
			list = append(list, fmt.Sprint(entry.LogEventType, " ", entry.IsLoanClosed))
		}
	}
	return list
}

func TestLogRecords_SayWhatHappened(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	patron := uuid.New()
	const lockRefused = `"logEventType":"LOAN","outcome":"lock_not_acquired","reason":"unable to acquire lock`
	for _, e := range []struct{ kind, payload string }{
		{kind: "LOG_RECORD", payload: lockRefused + `","waitMs":7750`},
		{kind: "LOG_RECORD", payload: lockRefused + `: it was released"`},
		{kind: "LOG_RECORD", payload: `"logEventType":"LOAN","outcome":"limit_reached","reason":"Patron has 5 items"`},
		{kind: "LOAN_DUE_DATE_CHANGED", payload: `"action":"renewed","previousDueDate":"2026-01-01T00:00:00Z",
			"dueDate":"2026-02-01T01:00:00+01:00"`},
		{kind: "LOAN_DUE_DATE_CHANGED", payload: `"dueDate":"2026-02-01T00:00:00Z"`},
		{kind: "ITEM_DECLARED_LOST", payload: `"action":"declaredLost","actionComment":"on a train"`},
		{kind: "LOAN_CLOSED", payload: `"loanId":"of a build before"`},
		{kind: "ITEM_CHECKED_OUT", payload: `"action":"checkedout"`},
		{kind: "ITEM_CHECKED_OUT", payload: `"action":"checkedOutThroughOverride"`},
		{kind: "ITEM_CHECKED_IN", payload: `"loanId":"l"`},
		{kind: "ITEM_CHECKED_IN", payload: `"itemId":"i"`},
	} {
		h.exec(`INSERT INTO {schema}.outbox (event_type, payload) VALUES ($1, $2)`, e.kind,
			fmt.Sprintf(`{"userId":%q,%s}`, patron, e.payload))
	}
	h.start(h.sink)
	h.awaitNone()
	got := h.logged(t)
	want := []string{
		"Check out: Not checked out: another check-out of this patron was still under way after 7.8 seconds of waiting. " +
			"Check the item out again.",
		"Check out: Not checked out: unable to acquire lock: it was released. Check the item out again.",
		"Check out: Not checked out: Patron has 5 items.",
		"Changed due date: New due date: 2026-02-01T00:00:00.000+00:00 (from 2026-01-01T00:00:00.000+00:00)",
		"Renewed: New due date: 2026-02-01T00:00:00.000+00:00 (from 2026-01-01T00:00:00.000+00:00)",
		"Changed due date: New due date: 2026-02-01T00:00:00.000+00:00 (from none)",
		"Declared lost: Additional information: on a train",
		"CHECK_OUT_EVENT false", "CHECK_OUT_THROUGH_OVERRIDE_EVENT false", "CHECK_IN_EVENT true", "CHECK_IN_EVENT false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The loan before it was anonymized does not name the patron to the readers. Without a mod-pubsub, only records
// have messages.
func TestMessages_StripThePatronOfAnAnonymizedLoan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	loan, patron := uuid.New(), uuid.New()
	h.exec(`INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, old, new)
		VALUES ('UPDATED', 'loan', $1::uuid, $2::uuid,
			jsonb_build_object('id', $1::uuid, 'userId', $2::uuid, 'proxyUserId', $2::uuid, 'action', 'checkedin'),
			jsonb_build_object('id', $1::uuid, 'action', 'checkedin'))`, loan, patron)
	h.exec(`INSERT INTO {schema}.outbox (event_type, payload) VALUES ('LOAN_CLOSED', '{}')`)
	h.names.PubSub = ""
	h.start(h.sink)
	h.awaitNone()
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	if len(h.sink.values) != 1 {
		t.Fatalf("got %d messages, want 1", len(h.sink.values))
	}
	value := string(h.sink.values[0].Value)
	if strings.Contains(value, patron.String()) || strings.Count(value, "checkedin") != 2 {
		t.Errorf("got %s", value)
	}
}
