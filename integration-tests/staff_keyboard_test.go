package integration_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// focusStays fails the test unless the element with the name has the focus.
func focusStays(t *testing.T, tab *browser.Page, name string) {
	t.Helper()
	if got := tab.Focused(); got != name {
		t.Errorf("the focus is on %q, want it to be on %q still", got, name)
	}
}

func TestStaffTurnTheLockOnWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: off()}, 1)
	tab := p.staff(t, 0)
	tab.Press("Tab")
	focusStays(t, tab, "Skip to the content")
	tab.Press("Enter", "Tab")
	focusStays(t, tab, "Turn on …") // past the navigation
	tab.Press("Shift+Tab")
	focusStays(t, tab, "Try a check-out") // the navigation's last
	tab.Reload()
	for _, page := range []string{"Feature", "Timing", "Live locks", "What happened", "Contention", "Try a check-out"} {
		tab.TabTo(page)
	}
	tab.TabTo("Turn on …")
	tab.Press("Enter")
	tab.See("Turn the check-out lock on?")
	tab.TabTo("Turn on")
	tab.Press("Enter")
	tab.FocusOn("Reason") // the browser shows what is missing
	tab.Type("The keyboard suffices")
	tab.Press("Tab")
	focusStays(t, tab, "Turn on")
	tab.Press("Enter")
	tab.See("The check-out lock is on now.", "The keyboard suffices")

	tab.TabTo("Turn off …")
	tab.Press("Enter")
	tab.See("Turn the check-out lock off?")
	tab.TabTo("Cancel")
	tab.Press("Enter")
	tab.See("The lock is on")
}

func TestStaffWhoUseTheKeyboardKeepTheirPlaceWhileLocksChange(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 1)
	first, second, third := uuid.NewString(), uuid.NewString(), uuid.NewString()
	firstLock := p.hold(t, first, "self-check-1", "", time.Minute)
	secondLock := p.hold(t, second, "self-check-2", "", time.Minute)
	tab := p.staff(t, 0)
	tab.TabTo("Live locks")
	tab.Press("Enter")
	tab.See(masked(first), "Pause Live Refresh")

	tab.TabTo("Pause")
	ticks(t, tab, secondLock, 2)
	focusStays(t, tab, "Pause")
	tab.Press("Space")
	focusStays(t, tab, "Go on")
	tab.Press("Space")

	tab.TabTo("Copy")  // of the first row's request
	tab.Press("Enter") // what it says changes for 2 s, and the row meanwhile
	tab.FocusOn("Copied")
	ticks(t, tab, firstLock, 2)
	tab.FocusOn("Copy")
	ticks(t, tab, firstLock, 1)
	focusStays(t, tab, "Copy")
	tab.Press("Tab", "Tab") // past the other id's
	focusStays(t, tab, "Release …")
	thirdLock := p.hold(t, third, "self-check-3", "", time.Minute)
	ticks(t, tab, thirdLock, 1)
	focusStays(t, tab, "Release …")

	p.unlock(t, firstLock) // and the focus with its row
	tab.FocusOn("Locks")
	tab.TabTo("Release …")
	p.unlock(t, thirdLock) // another row
	tab.Gone("self-check-3")
	ticks(t, tab, secondLock, 1)
	focusStays(t, tab, "Release …")

	tab.Press("Enter")
	tab.See("Release this lock?", "self-check-2")
	tab.TabTo("Reason")
	tab.Type("Nothing moves")
	tab.Press("Tab")
	focusStays(t, tab, "Release the lock")
	tab.Press("Enter")
	tab.See("The lock was released.", "No lock is held now.")
	p.noLocksLeft(t)
}
