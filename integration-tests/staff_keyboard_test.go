package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// checkFocus fails the test unless the element with the accessible name has the focus.
func checkFocus(t *testing.T, tab *browser.Page, name string) {
	t.Helper()
	if got := tab.Focused(); got != name {
		t.Errorf("the focus is on %q, want it on %q", got, name)
	}
}

func TestStaffKeyboard_TurnsTheLockOn(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0)
	tab.Press("Tab")
	checkFocus(t, tab, "Skip to the content")
	tab.Press("Enter", "Tab")
	checkFocus(t, tab, "Turn on …") // after the navigation
	tab.Press("Shift+Tab")
	checkFocus(t, tab, "Circulation rules") // the navigation's last link
	tab.Reload()
	for _, page := range []string{
		"On / off", "Timing", "Locks now", "Check-out history", "Waiting times", "Try a check-out", "Self-check machines",
		"Circulation rules",
	} {
		tab.TabTo(page)
	}
	tab.TabTo("Turn on …")
	tab.Press("Enter")
	tab.See("Turn the check-out lock on?")
	tab.TabTo("Turn on")
	tab.Press("Enter")
	tab.FocusOn("Reason") // the browser focuses the missing field
	tab.Type("The keyboard suffices")
	tab.Press("Tab")
	checkFocus(t, tab, "Turn on")
	tab.Press("Enter")
	tab.See("The check-out lock is on now.", "The keyboard suffices")
	if got := tab.Text(".note:focus"); !strings.Contains(got, "The check-out lock is on now.") {
		t.Errorf("the focused note says %q", got)
	}

	tab.TabTo("Turn off …")
	tab.Press("Enter")
	tab.See("Turn the check-out lock off?")
	tab.TabTo("Cancel")
	tab.Press("Enter")
	tab.See("The lock is on")
}

func TestStaffKeyboard_FocusStays(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	first, second, third := uuid.NewString(), uuid.NewString(), uuid.NewString()
	firstLock := p.acquireLockAs(t, first, "self-check-1", "", outlastsTests)
	secondLock := p.acquireLockAs(t, second, "self-check-2", "", outlastsTests)
	tab := p.openStaffPage(t, 0)
	tab.TabTo("Locks now")
	tab.Press("Enter")
	tab.See(maskID(first), "Pause Live Refresh")

	tab.TabTo("Pause")
	waitForTicks(t, tab, secondLock, 2)
	checkFocus(t, tab, "Pause")
	tab.Press("Space")
	checkFocus(t, tab, "Go on")
	tab.Press("Space")

	tab.TabTo("Copy")  // of the first row's request id
	tab.Press("Enter") // its name changes for 2 s; meanwhile the row changes
	tab.FocusOn("Copied")
	waitForTicks(t, tab, firstLock, 2)
	tab.FocusOn("Copy")
	waitForTicks(t, tab, firstLock, 1)
	checkFocus(t, tab, "Copy")
	tab.Press("Tab", "Tab") // past the button of the lock's id
	checkFocus(t, tab, "Release …")
	thirdLock := p.acquireLockAs(t, third, "self-check-3", "", outlastsTests)
	waitForTicks(t, tab, thirdLock, 1)
	checkFocus(t, tab, "Release …")

	p.releaseLock(t, firstLock) // removes the row with the focus
	tab.FocusOn("Locks")
	tab.TabTo("Release …")
	p.releaseLock(t, thirdLock) // removes another row
	tab.Gone("self-check-3")
	waitForTicks(t, tab, secondLock, 1)
	checkFocus(t, tab, "Release …")

	tab.Press("Enter")
	tab.See("Release this lock?", "self-check-2")
	tab.TabTo("Reason")
	tab.Type("Nothing moves")
	tab.Press("Tab")
	checkFocus(t, tab, "Release the lock")
	tab.Press("Enter")
	tab.See("The lock was released.", "No lock is held now.")
	p.checkNoLocks(t)
}

// The skip link leads past navigation and filters, so few tabs lead to the first row of the history.
func TestStaffKeyboard_ReachesTheFirstRowInTenTabs(t *testing.T) {
	t.Parallel()
	const most = 10
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	_, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated)
	p.waitForHistory(t, 0, book)
	tab := p.openStaffPage(t, 0)
	tab.Click("Check-out history")
	tab.See(book)
	tab.Reload()
	var passed []string
	for range most {
		tab.Press("Tab")
		focused := tab.Focused()
		switch focused {
		case "Skip to the results":
			tab.Press("Enter")
		case book:
			return
		}
		passed = append(passed, focused)
	}
	t.Errorf("%d tabs do not lead to the item of the first row, but to %q", most, passed)
}
