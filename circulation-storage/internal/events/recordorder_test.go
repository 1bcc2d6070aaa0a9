package events_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
)

// addChange adds an event of a loan and a patron, nil for none.
func (h harness) addChange(loan uuid.UUID, patron any, n string) {
	h.t.Helper()
	h.exec(`INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, new)
		VALUES ('UPDATED', 'loan', $1, $2, jsonb_build_object('n', $3::text))`, loan, patron, n)
}

// A loan that lost its patron is deleted while an earlier event of the patron cannot be delivered. A
// reader that got the deletion before the change would keep the loan.
func TestDeliverer_InOrderForARecordThatLosesItsPatron(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	patron, heir, loan := uuid.New(), uuid.New(), uuid.New()
	h.add(patron, "bad")
	h.addChange(loan, patron, "anonymized")
	h.addChange(loan, nil, "deleted")
	h.addChange(loan, heir, "of another patron")
	h.add(heir, "behind")
	h.add(uuid.New(), "other")
	h.sink.refuse = func(n string) bool { return n == "bad" }
	h.start(h.sink)
	if got := h.await(1); !slices.Equal(got, []string{"other"}) {
		t.Errorf("got %q, want what is not behind the event", got)
	}
	h.sink.set(func() { h.sink.refuse = nil })
	h.awaitNone()
	want := []string{"other", "bad", "anonymized", "deleted", "of another patron", "behind"}
	if got := h.sink.all(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The next turn goes on behind a batch for which there was no time. It sends nothing that is behind the
// rest of the batch.
func TestDeliverer_InOrderForARecordOfABatchThatFailsSlowly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.brief = 2 * time.Second
	heir, loan := uuid.New(), uuid.New()
	h.addMany("bad", 198)
	h.addChange(loan, uuid.New(), "bad")
	h.addChange(loan, heir, "of another patron") // the last row of the batch
	h.add(heir, "behind")
	h.add(uuid.New(), "other")
	h.sink.refuse = func(n string) bool { return n == "bad" }
	h.start(stalling{h.sink})
	if got := h.await(1); !slices.Equal(got, []string{"other"}) {
		t.Errorf("got %q, want what is not behind another event", got)
	}
	h.sink.set(func() { h.sink.refuse = nil })
	h.awaitNone()
	if got := h.sink.all(); slices.Index(got, "behind") < slices.Index(got, "of another patron") {
		t.Errorf("got %q, want the patron's events in order", got)
	}
}

// A record may have its patron's id in capitals, and its event too.
func TestDeliverer_InOrderForAPatronInCapitals(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	patron := uuid.New()
	h.add(patron, "bad")
	h.exec(`INSERT INTO {schema}.outbox (event_type, payload)
		VALUES ('LOAN_CLOSED', jsonb_build_object('userId', $1::text))`, strings.ToUpper(patron.String()))
	h.add(uuid.New(), "other")
	h.sink.refuse = func(n string) bool { return n == "bad" }
	stop := h.start(h.sink)
	h.await(1)
	h.awaitFailure(events.NotReceived)
	stop() // after the turn
	if got := h.sink.all(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("got %q, want what is not behind the event", got)
	}
}
