package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// clerk is the user of tests with password authentication.
const (
	clerk         = "Ms Berger"
	clerkPassword = "correct horse battery"
)

// requirePassword returns circulation's settings for password authentication.
func requirePassword() []string {
	return []string{"STAFF_AUTH=basic", "STAFF_PASSWORD=" + clerkPassword}
}

// turnLock turns the lock on or off with the switch of the page Feature.
func turnLock(tab *browser.Page, to, reason string) {
	tab.Click("Turn " + to + " …")
	tab.Fill("Reason", reason)
	tab.Click("Turn " + to)
	tab.See("The check-out lock is "+to+" now.", "The lock is "+to)
}

func TestStaffSwitch(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: append(requirePassword(), "LOCK_TTL_MS=600000"),
	}, 1000)
	userID, patron := p.addPatron(t)
	p.acquireLock(t, userID, outlastsTests)
	refused := func() bool { return isRefusedForLock(t, p.lendBook(t, 1, p.addBooks(t, 1)[0], patron)) }
	if refused() {
		t.Fatal("a lock blocked a check-out while the feature was off")
	}

	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	tab.See("The lock is off", "the default", "No change of this library's settings is on record",
		"Signed in as "+clerk)
	tab.Click("Turn on …")
	tab.See("the loan limit holds also when machines send many at once", "It takes effect at once")

	const why = "Two machines lent one patron too much"
	tab.Click("Turn on") // without a reason the browser does not send the form
	tab.FocusOn("Reason")
	tab.Fill("Reason", "   ")
	tab.Click("Turn on")
	if e := tab.Find("Reason"); !e.Invalid || !strings.Contains(e.Description, "Say why, in a few words") ||
		tab.Status() != http.StatusUnprocessableEntity {
		t.Errorf("status %d, the field is %+v, want an error message", tab.Status(), e)
	}
	if refused() {
		t.Error("the lock is on, although the reason is missing")
	}
	tab.Fill("Reason", why)
	tab.Click("Turn on")
	tab.See("The check-out lock is on now.", "The lock is on", "Set by your library.")
	if !refused() {
		t.Error("the lock is on, and a check-out on the other instance ignored it")
	}
	tab.In(why).See(clerk, "Lock: on, before that the default")

	turnLock(tab, "off", "The gate is repaired")
	waitUntil(t, settingsLimit, "the lock is off on the other instance", func() bool { return !refused() })
	tab.In("The gate is repaired").See(clerk, "Lock: off, before that on")
	tab.In(why).See("Lock: on, before that the default") // is still listed

	tab.Click("Go back to the default (off) …")
	tab.Fill("Reason", "Another office decides")
	tab.Click("Go back to the default")
	tab.See("This library now follows the default.", "The lock is off", "the default")
	tab.In("Another office decides").See("Lock: the default, before that off")
}
