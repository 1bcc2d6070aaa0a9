package integration_test

import (
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// Errors in the console and violations of the page's Content-Security-Policy fail the test
// too.
func TestStaffPages_AreAccessible(t *testing.T) {
	t.Parallel()
	for _, venue := range startVenues(t) {
		tab := venue.openFirstPage(t)
		for _, s := range venue.scenes {
			t.Log(s.name)
			s.show(t, venue.pair, tab)
			tab.CheckAxe()
			tab.CheckWidth()
			tab.With(tab.CheckWidth, browser.Paper())
			tab.With(tab.CheckAxe, browser.Dark())
			tab.With(func() { tab.CheckAxe(); tab.CheckWidth() }, browser.Zoom(2))
		}
	}
}

func TestStaffPages_UnderlineTheCurrentTabOnlyInForcedColours(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{}, 1)
	tab := p.openStaffPage(t, 0, browser.ForcedColours())
	for selector, want := range map[string]string{".nav a[aria-current]": "solid", ".nav a:not([aria-current])": "none"} {
		if got := tab.Style(selector, "border-bottom-style"); got != want {
			t.Errorf("the border of %s is %s, want %s", selector, got, want)
		}
	}
}

func TestStaffPages_Print(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("MACHINE_PATIENCE=60s")}, 1)
	tab := p.openStaffPage(t, 0)
	tab.Click("Timing")
	tab.Fill(waitsLabel, "5000, 5000")
	const warning = "A machine may wait longer (10 s) than until the lock expires (3 s)"
	tab.See(warning, "Save the times", "Waiting times")
	tab.With(func() {
		tab.See(warning)
		tab.Gone("Save the times")
		tab.Gone("Waiting times")
	}, browser.Paper())

	userID, _ := p.addPatron(t)
	p.acquireLockAs(t, userID, "self-check-3", "", outlastsTests)
	tab.Click("Locks now")
	tab.See(maskID(userID), "Pause", "Copy", "Refresh", "Filter")
	tab.With(func() {
		tab.See(maskID(userID), "1 lock held")
		for _, button := range []string{"Pause", "Copy", "Refresh", "Filter", "Show the patrons"} {
			tab.Gone(button)
		}
	}, browser.Paper())
}
