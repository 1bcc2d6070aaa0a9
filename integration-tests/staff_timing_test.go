package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// The labels of the page Timing.
const (
	ttlLabel   = "Lock expires after"
	waitsLabel = "Waits between tries"
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
	sums.See("its patron waits at most 3 s")
	sums.Gone("A machine may wait")

	tab.Fill(waitsLabel, "1000, 1000, 1500")
	sums.See("A machine asks for the lock 4 times It waits at most 3.5 s")
	sums.See("A machine may wait longer (3.5 s) than until the lock expires (3 s)")
	sums.Gone("give up")
	tab.Fill(ttlLabel, "9000")
	sums.See("its patron waits at most 9 s")
	sums.Gone("A machine may wait")
	tab.Fill(waitsLabel, "3000 3000")
	sums.See("A machine may wait 6 s, but the library's machines give up after 5 s.")
	sums.Gone("longer")
	tallest := tab.Height()
	tab.Fill(waitsLabel, "none")
	sums.See("A machine asks for the lock 1 time It waits at most 0 ms")
	tab.Fill(ttlLabel, "9 sec")
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
	const wrong = "“9 sec” cannot be used. Type a time from 250 ms to 600 s, such as 3 s, or leave the field empty."
	if ttl := tab.FindField(ttlLabel); !ttl.Invalid || !strings.Contains(ttl.Description, wrong) || ttl.Value != "9 sec" {
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
	tab.Fill(ttlLabel, "1 s")
	tab.Fill(waitsLabel, "0.7s; 0.8 s")
	tab.Click("Save the times")
	tab.See("Nothing is saved yet", "than until the lock expires (1 s)")
	if now := p.readSettings(t, 1); now["version"] != before {
		t.Errorf("times with a warning were stored without a second question: %v", now)
	}
	tab.Fill(ttlLabel, "1.2 s") // the warning was about others
	tab.Click("Save anyway")
	tab.See("Nothing is saved yet", "than until the lock expires (1.2 s)")
	tab.Click("Save anyway")
	tab.See("The new times are saved.")
	tab.Click("On / off")
	tab.See("The lock is on", "A machine may wait longer (1.5 s) than until the lock expires (1.2 s)")
	tab.In("Pages").Click("Timing")
	tab.Fill(ttlLabel, "9000")
	tab.Fill("Reason", "The vault is slow")
	tab.Click("Save the times")
	tab.See("The new times are saved.")
	if got := tab.FindField(waitsLabel).Value; got != "700 ms, 800 ms" {
		t.Errorf("the saved waits are shown as %q", got)
	}
	checkParts(t, "the settings on the other instance", p.readSettings(t, 1), record{
		"lockTtlMs.value": 9000.0, "lockTtlMs.source": "tenant", "retryIntervalsMs.source": "tenant", "longestWaitMs": 1500.0,
		"enabled.value": true, "enabled.source": "environment",
	})
	tab.Click("On / off")
	tab.See("Lock expires after: 9 s, before that 1.2 s The vault is slow",
		"Lock expires after: 1.2 s, before that the default Waits: 700 ms, 800 ms, before that the default The vault is slow")
}

func TestStaffTiming_Choices(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=9000", "RETRY_INTERVAL_MS=700")}, 1)
	tab := p.openStaffPage(t, 0, browser.Size(390, 844))
	tab.Click("Timing")
	tab.See("Recommended", "A patron waits at the machine for up to 2 s.", "the patron's next one works after 3 s at most")
	tab.Click("Fill in: Patient")
	tab.In("What the times in the form mean").See("It waits at most 4 s", "its patron waits at most 5 s")
	tab.Fill("Reason", "Long piles")
	tab.CheckAxe()
	tab.CheckWidth()
	tab.Click("Save the times")
	tab.See("The new times are saved.", "In force now")
	checkParts(t, "the saved choice", p.readSettings(t, 0), record{"lockTtlMs.value": 5000.0, "longestWaitMs": 4000.0})
}
