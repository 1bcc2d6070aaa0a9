package events_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
)

// The handler of the log adds the tenant to each line, so a line must not name it a second time.
func TestDeliverer_LogsARefusedEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var log bytes.Buffer
	h.log, h.sink.never = &log, func(string) bool { return true }
	h.add(uuid.New(), "bad")
	stop := h.start(h.sink)
	h.awaitFailure(events.Refused)
	stop()
	if !strings.Contains(log.String(), " event=1 err=") || strings.Contains(log.String(), "tenant") {
		t.Errorf("got %s, want the event and its error alone", log.String())
	}
}

// A tenant that moves to another cluster during its turn is no failure of the reader.
func TestDeliverer_IsQuietAboutATenantThatMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var log bytes.Buffer
	h.log = &log
	h.add(uuid.New(), "1")
	slow := frozen{memory: h.sink, sending: make(chan struct{}, 1), goOn: make(chan struct{})}
	stop := h.start(slow)
	<-slow.sending
	h.exec(`ALTER SCHEMA {schema} RENAME TO {schema}_moved`)
	defer h.exec(`ALTER SCHEMA {schema}_moved RENAME TO {schema}`)
	close(slow.goOn)
	h.awaitFailure(events.NotRead)
	stop()
	if log.Len() > 0 {
		t.Errorf("got %s, want no line", log.String())
	}
}
