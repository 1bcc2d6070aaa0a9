package integration_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffScript_ReloadDropsTheMessage(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0)
	turnLock(tab, "on", "Self-checks open today")
	tab.See("The check-out lock is on now.")
	if url := tab.URL(); strings.Contains(url, "done") {
		t.Errorf("the address is %s, want it without the message", url)
	}
	tab.Reload()
	tab.See("The lock is on")
	tab.Gone("The check-out lock is on now.")
}

func TestStaffScript_ReconnectsAfter429(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	follow := func() int { // opens one more stream, until leave is called
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.staffURL(0, "/locks/live"), nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := burstClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Body.Close() })
		return a.StatusCode
	}
	for n := 0; follow() == http.StatusOK; n++ {
		if n > 100 {
			t.Fatal("the number of streams has no limit")
		}
	}
	tab := p.openStaffPage(t, 0)
	tab.ExpectError("429")
	tab.Click("Locks now")
	tab.See("Pause Not live: trying again Refresh")
	leave()
	tab.See("Pause Live Refresh")
}

func TestStaffScript_ShowsALostConnection(t *testing.T) {
	t.Parallel()
	p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock()}, 1)
	_, barcode := p.addPatron(t)
	tab := p.openStaffPage(t, 0)
	tab.Goto(p.staffURL(0, "/locks?patron="+barcode))
	tab.See("No lock is like this now.", "Pause Live Refresh")
	links[0].addFault(linkFault{method: http.MethodGet, path: acquirePath, times: always, handle: loseRequest})
	tab.See("What is new could not be read just now.", "Pause Not live: trying again Refresh")
	if strings.Contains(tab.Text("main"), "Pause Live Refresh") {
		t.Error("the page says Live without a connection")
	}
}

func TestStaffScript_Copy(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(enableLock(), requirePassword()...)}, 1)
	id := p.acquireLockAs(t, uuid.NewString(), "self-check-3", "", outlastsTests)
	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	tab.Click("Locks now")
	row := tab.In("self-check-3")
	row.See(id[:8])
	row.TabTo("Copy")
	tab.Press("Enter")
	tab.FocusOn("Copied")
	tab.Press("Enter")
	tab.FocusOn("Copy")
	waitForTicks(t, tab, id, 3) // longer than the first one's message
	checkFocus(t, tab, "Copy")

	p.Circulations[0] = strings.Replace(p.Circulations[0], "127.0.0.1", browser.FarHost, 1)
	far := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	far.ExpectError("The Cross-Origin-Opener-Policy header has been ignored")
	far.Click("Locks now")
	far.TabTo("Release …")
	far.Press("Shift+Tab") // the copy button of the lock's id
	far.Press("Enter")
	far.FocusOn("Selected, copy it by hand")
	far.See(id)
	waitForTicks(t, far, id, 2)
	far.See(id)
}
