package integration_test

import (
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// On plain http a browser trusts only the machine it runs on: of a request to any
// other it does not say which site it came from.
func TestStaffAccess_OverPlainHTTP(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	p.Circulations[0] = strings.Replace(p.Circulations[0], "127.0.0.1", browser.FarHost, 1)
	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	tab.ExpectError("The Cross-Origin-Opener-Policy header has been ignored") // which protects where the browser trusts
	tab.See("Signed in as " + clerk)
	turnLock(tab, "on", "The front desk has no certificate")
	tab.Click("Timing")
	tab.Fill(ttlLabel, "4000")
	tab.Fill("Reason", "Slow gates")
	tab.Click("Save the times")
	tab.See("The new times are saved.")
}
