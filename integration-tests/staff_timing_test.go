package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// The labels of the page Timing.
const (
	ttlLabel   = "Time to live, in milliseconds"
	waitsLabel = "Waits between tries, in milliseconds"
)

func TestStaffTiming(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: []string{
		"CHECKOUT_LOCK_FEATURE_ENABLED=true", "LOCK_TTL_MS=3000", "RETRY_INTERVAL_MS=500|500", "MACHINE_PATIENCE=5s",
	}}, 1)
	before := p.readSettings(t, 1)["version"]
	tab := p.openStaffPage(t, 0)
	tab.Click("Timing")
	sums := tab.In("What the times in the form mean")
	sums.See("A machine asks for the lock 3 times It waits at most 1 s")
	sums.See("when the holder dies 3 s")
	sums.Gone("A machine may wait")

	tab.Fill(waitsLabel, "1000, 1000, 1500")
	sums.See("A machine asks for the lock 4 times It waits at most 3.5 s")
	sums.See("A machine may wait longer (3.5 s) than a lock lives (3 s)")
	sums.Gone("MACHINE_PATIENCE")
	tab.Fill(ttlLabel, "9000")
	sums.See("when the holder dies 9 s")
	sums.Gone("A machine may wait")
	tab.Fill(waitsLabel, "3000 3000")
	sums.See("A machine may wait 6 s, but the library's machines give up after 5 s (MACHINE_PATIENCE)")
	sums.Gone("longer")
	tallest := tab.Height()
	tab.Fill(waitsLabel, "none")
	sums.See("A machine asks for the lock 1 time It waits at most 0 ms")
	tab.Fill(ttlLabel, "9 s")
	sums.See("The times cannot be used as they are.")
	if now := tab.Height(); now < tallest {
		t.Errorf("the page shrinks from %g to %g, which moves the button", tallest, now)
	}
	if now := p.readSettings(t, 1); now["lockTtlMs"].(record)["value"] != 3000.0 || now["version"] != before {
		t.Errorf("the typed times are in force: %v", now)
	}

	tab.Fill("Reason", "The vault is slow")
	tab.Click("Save the times")
	if tab.Status() != http.StatusUnprocessableEntity {
		t.Errorf("an invalid time was answered with %d", tab.Status())
	}
	tab.See("Please look at this again")
	const wrong = "Type a whole number from 250 to 600000, or leave the field empty."
	if ttl := tab.FindField(ttlLabel); !ttl.Invalid || !strings.Contains(ttl.Description, wrong) || ttl.Value != "9 s" {
		t.Errorf("the field with the wrong time is %+v, want the message %q", ttl, wrong)
	}
	if waits := tab.FindField(waitsLabel); waits.Invalid || waits.Value != "none" {
		t.Errorf("the field with the right value is %+v", waits)
	}
	if now := p.readSettings(t, 1); now["version"] != before {
		t.Errorf("invalid times were stored: %v", now)
	}

	tab.Click(ttlLabel) // the message leads to the field
	tab.FocusOn(ttlLabel)
	tab.Fill(ttlLabel, "9000")
	tab.Fill(waitsLabel, "700; 800")
	tab.Click("Save the times")
	tab.See("The new times are saved.")
	if got := tab.FindField(waitsLabel).Value; got != "700, 800" {
		t.Errorf("the saved waits are shown as %q", got)
	}
	checkParts(t, "the settings on the other instance", p.readSettings(t, 1), record{
		"lockTtlMs.value": 9000.0, "lockTtlMs.source": "tenant", "retryIntervalsMs.source": "tenant", "longestWaitMs": 1500.0,
		"enabled.value": true, "enabled.source": "environment",
	})
	tab.Click("On / off")
	tab.See("Time to live: 9000 ms, before that the service's own setting Waits: 700, 800 ms, before that the service's " +
		"own setting The vault is slow")
}
