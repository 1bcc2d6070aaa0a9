package events_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

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

// lines is what a log writes, line by line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// An event that fails for days hides no outage of the reader.
func TestDeliverer_LogsAnOutageBesideAnEventThatFails(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	log := make(lines, 100)
	h.log, h.sink.refuse = log, func(n string) bool { return n == "bad" }
	h.add(uuid.New(), "bad")
	h.start(h.sink)
	want := func(level, cause string) {
		t.Helper()
		select {
		case line := <-log:
			if !strings.Contains(line, level) || !strings.Contains(line, cause) {
				t.Fatalf("got %s, want %s with %q", line, level, cause)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("got no line, want %s with %q", level, cause)
		}
	}
	turns := func() { // the events fail in two more of them
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for before := h.sink.failed(events.NotReceived); h.sink.failed(events.NotReceived) < before+3; {
			<-tick.C
		}
	}
	want("WARN", "bad is refused")
	turns()
	for range 2 {
		h.sink.set(func() { h.sink.down = true })
		want("WARN", "reaching the reader of events: away")
		turns()
		h.sink.set(func() { h.sink.down = false })
		want("WARN", "bad is refused")
		turns()
	}
	h.sink.set(func() { h.sink.refuse = nil })
	want("INFO", "events are delivered again")
}
