package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// A link on another site must not invalidate a form that is open in another tab.
func TestStaffForm_AfterALinkFromAnotherSite(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0)
	tab.Click("Turn on …")
	form := tab.URL()
	token := tab.Attribute("input[name=token]", "value")

	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>A mail</title><p>Look at <a href="%s">the lock</a>`,
			form)
	}))
	t.Cleanup(elsewhere.Close)
	tab.Goto(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)) // another site than 127.0.0.1
	tab.Click("the lock")
	tab.See("Turn the check-out lock on?")
	if got := tab.Attribute("input[name=token]", "value"); got != token || token == "" {
		t.Errorf("the token is %q, want the token %q of the open form", got, token)
	}
}

// A double click or a lost answer sends the same form twice.
func TestStaffForm_SentTwice(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: disableLock()}, 1)
	tabs := []*browser.Page{p.openStaffPage(t, 0), p.openStaffPage(t, 1)}
	for _, tab := range tabs {
		tab.Click("Turn on …")
		tab.Fill("Reason", "Sent twice to turn it on")
	}
	for _, tab := range tabs {
		tab.Click("Turn on")
		tab.See("The check-out lock is on now.")
		tab.In("Sent twice to turn it on").See("Lock: on, before that the default")
	}
	for _, tab := range tabs {
		tab.Click("Timing")
		tab.Fill(ttlLabel, "4000")
		tab.Fill("Reason", "Sent twice to save the times")
	}
	for _, tab := range tabs {
		tab.Click("Save the times")
		tab.See("The new times are saved.")
	}
	if n := p.countRecords(t, "/check-out-lock-changes-storage"); n != 2 {
		t.Errorf("%d changes are stored, want 2", n)
	}
}

func TestStaffForm_ReleasesALockTwice(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock()}, 1)
	userID, _ := p.addPatron(t)
	id := p.acquireLock(t, userID, outlastsTests)
	first, second := p.openStaffPage(t, 0), p.openStaffPage(t, 1)
	first.Goto(p.staffURL(0, "/locks/"+id+"/release"))
	second.Goto(p.staffURL(1, "/locks/"+id+"/release"))
	first.Fill("Reason", "First of two")
	second.Fill("Reason", "Second of two")
	first.Click("Release the lock")
	first.See("The lock was released.")
	second.Click("Release the lock")
	second.See("The lock is gone already", "Nothing was done")
	second.In("Pages").Click("On / off")
	second.In("First of two").See("Released a lock by force")
	second.Gone("Second of two")
}

func TestStaffForm_OlderThanTheSettings(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0)
	tab.Click("Turn on …")
	tab.Fill("Reason", "Mine comes second")
	p.changeSettings(t, 1, record{"enabled": false, "lockTtlMs": 4000, "reason": "Theirs comes first"})
	tab.Click("Turn on")
	tab.See("Another change came first", "Nothing of yours was saved")
	if tab.Status() != http.StatusConflict {
		t.Errorf("got status %d, want 409", tab.Status())
	}
	tab.Click("Back to the first page")
	tab.See("The lock is off", "Theirs comes first")
	tab.Gone("Mine comes second")
	checkParts(t, "settings", p.readSettings(t, 1), record{"enabled.value": false, "lockTtlMs.value": 4000.0})
	turnLock(tab, "on", "Mine again")
}
