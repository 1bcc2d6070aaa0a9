package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffSignIn(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	tab := chromium.Open(t)
	tab.Goto(p.staffURL(0, "/timing"))
	tab.See("Sign in", "Your name", "Password")
	tab.Gone("Timing")
	tab.CheckAxe()
	tab.CheckWidth()
	tab.Fill("Your name", clerk)
	tab.Fill("Password", "wrong horse battery")
	tab.Click("Sign in")
	tab.See("The password is wrong")
	if tab.Status() != http.StatusUnprocessableEntity || tab.Find("Your name").Value != clerk {
		t.Errorf("status %d, the name is %q", tab.Status(), tab.Find("Your name").Value)
	}
	tab.CheckAxe()
	tab.Fill("Password", clerkPassword)
	tab.Press("Enter")
	tab.See("Signed in as "+clerk, "Sign out", "Save the times")
	if tab.URL() != p.staffURL(0, "/timing") {
		t.Errorf("the sign-in leads to %s", tab.URL())
	}
	tab.Goto(p.staffURL(1, "/")) // browsers send cookies to all ports of a host
	tab.See("Signed in as " + clerk)
	turnLock(tab, "on", "The new self-checks open today")
	tab.In("The new self-checks open today").See(clerk + " Lock: on")

	tab.Click("Sign out")
	tab.See("You are signed out")
	for i := range p.Circulations {
		tab.Goto(p.staffURL(i, "/locks"))
		tab.See("Your name", "Password")
	}
}

func TestStaffSignIn_WithoutScriptOnAPhone(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	tab := p.openStaffPage(t, 0, browser.WithoutScript(), browser.Size(390, 800))
	tab.Fill("Your name", clerk)
	tab.Fill("Password", clerkPassword)
	tab.Click("Sign in")
	tab.See("Signed in as " + clerk)
	tab.CheckWidth()
	tab.Click("Sign out")
	tab.See("You are signed out")
	tab.CheckWidth()
}
