package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffWithoutScript_Settings(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0, browser.WithoutScript())
	tab.Click("Turn on …")
	tab.Fill("Reason", " ")
	tab.Click("Turn on")
	if e := tab.Find("Reason"); !e.Invalid || tab.Status() != http.StatusUnprocessableEntity {
		t.Errorf("status %d, the field is %+v, want an error message", tab.Status(), e)
	}
	tab.Fill("Reason", "No script is needed")
	tab.Click("Turn on")
	tab.See("The check-out lock is on now.", "No script is needed")

	tab.Click("Timing")
	tab.Fill(ttlLabel, "2500")
	tab.Fill(waitsLabel, "1000, 2000")
	tab.Click("Show what they mean") // works without a reason
	tab.See("A machine asks for the lock 3 times", "It waits at most 3 s",
		"A machine may wait longer (3 s) than until the lock expires (2.5 s)")
	tab.Gone("Please look at this again")
	checkParts(t, "settings before they are saved", p.readSettings(t, 1), record{
		"enabled.value": true, "lockTtlMs.source": "environment",
	})

	tab.Fill(ttlLabel, "soon")
	tab.Fill("Reason", "Slow gates")
	tab.Click("Save the times")
	tab.See("Please look at this again", "The times cannot be used as they are.")
	if e := tab.FindField(ttlLabel); !e.Invalid ||
		!strings.Contains(e.Description, "Type a time from 250 ms to 600 s") || e.Value != "soon" {
		t.Errorf("the field is %+v, want an error message and the typed value", e)
	}
	if e := tab.FindField(waitsLabel); e.Invalid || e.Value != "1000, 2000" {
		t.Errorf("the other field is %+v, want the typed value", e)
	}
	tab.Fill(ttlLabel, "4000")
	tab.Click("Save the times")
	tab.See("The new times are saved.", "In force: 4 s, set by your library.")
	checkParts(t, "settings once they are saved", p.readSettings(t, 1), record{
		"enabled.value": true, "lockTtlMs.value": 4000.0, "longestWaitMs": 3000.0,
	})
}

func TestStaffWithoutScript_Release(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	userID, _ := p.addPatron(t)
	tab := p.openStaffPage(t, 0, browser.WithoutScript())
	tab.Click("Locks now")
	tab.See("No lock is held now.")
	for _, button := range []string{"Pause", "Copy"} {
		tab.Gone(button) // needs scripts
	}
	id := p.acquireLockAs(t, userID, "self-check-3", "", outlastsTests)
	tab.Click("Refresh")
	tab.In(maskID(userID)).See("self-check-3", "Held")
	tab.Gone("Copy")
	tab.In(maskID(userID)).Click("Release …")
	tab.Fill("Reason", "It stays for too long")
	tab.Click("Release the lock")
	tab.See("The lock was released.", "No lock is held now.")
	if a := callEndpoint(t, p.Storage, http.MethodGet, acquirePath+"/"+id, nil); a.Status != http.StatusNotFound {
		t.Errorf("the lock is still there: %d %s", a.Status, a.Body)
	}
}

func TestStaffWithoutScript_HistoryAndTry(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	_, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
	readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
	p.waitForHistory(t, 0, books[1])

	tab := p.openStaffPage(t, 0, browser.WithoutScript())
	tab.Click("Check-out history")
	tab.Fill("Patron", patron)
	tab.Select("Outcome", "Limit reached")
	tab.Click("Search")
	tab.In(books[1]).See("Limit reached", "maximum limit of 1 items")
	tab.Gone(books[0])
	tab.Click("Show all")
	tab.In(books[0]).See("Lent")
	tab.Click("What the outcomes mean") // works without scripts
	tab.See("The loan was made.")

	tab.Click("Waiting times")
	tab.See("2 check-outs in the last hour, 1 lent and 1 not.", "Most often: Limit reached")
	tab.In("ITEM_LIMIT_MATERIAL_TYPE").See("Limit reached")
	tab.Click("Refresh")
	tab.See("2 check-outs in the last hour")

	tab.Click("Try a check-out")
	tab.Fill("Item's barcode", books[1])
	tab.Fill("Patron's barcode", patron)
	tab.Click("Try")
	tab.See("Would be refused", "maximum limit of 1 items", "1 of 1 loans, the limit is reached")
}
