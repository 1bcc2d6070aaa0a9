package integration_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffRelease_RefusesTheHolder(t *testing.T) {
	t.Parallel()
	granted, open := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(open) })
	t.Cleanup(goOn)
	hang := sync.OnceFunc(func() { // the first check-out, before its commit
		close(granted)
		<-open
	})
	p, _ := startPairThatAcquires(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: append(enableLock("LOCK_TTL_MS=600000"), requirePassword()...),
		OnStep: atStep(0, circulation.Locked, hang),
	}, 1)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	const requestID = "gate-1/check-out-17"
	p.machines[0].Header = http.Header{"X-Okapi-Request-Id": {requestID}}
	// Before the check-outs, which wait for 25 s only.
	tab := p.openStaffPage(t, 1, browser.BasicAuth(clerk, clerkPassword))
	tab.Click("Locks now")
	hangs := p.startLending(t.Context(), t, 0, books[0], patron)
	<-granted
	waits := p.startLending(t.Context(), t, 1, books[1], patron)
	p.waitForWaiters(t, 1)

	tab.In(maskID(userID)).See("Held", "circulation-1", requestID[:8])
	tab.In(maskID(userID)).Click("Release …")
	tab.See("Release this lock?", maskID(userID), "circulation-1", requestID, "Why it is safe",
		"it is refused. If its machine still waits, it takes the lock again and counts the loans again")
	tab.Fill("Reason", "Gate 1 hangs and the patron waits")
	tab.Click("Release the lock")
	tab.See("The lock was released.")

	readObject(t, waits.awaitAnswer(), http.StatusCreated) // the waiter lends at once
	goOn()
	if got := joinMessages(readRefusals(t, hangs.awaitAnswer(), http.StatusUnprocessableEntity)); !strings.Contains(got,
		"maximum limit of 1 items") {
		t.Errorf("the holder was refused with %q, want the limit", got)
	}
	const repeats = "circulation_commit_repeats_total{"
	metrics := p.readMetrics(t, p.Circulations[0])
	if strings.Count(metrics, "\n"+repeats) != 1 || readSample(metrics, repeats+`reason="LOCK_LOST"}`) != 1 {
		t.Errorf("the holder's commit was not repeated once for the lost lock: %s", metrics)
	}
	if n := p.countOpenLoans(t, userID); n != 1 {
		t.Errorf("the patron has %d loans, want the limit of 1", n)
	}
	if got := p.readState(t, userID, books[0]); got.Status != "Available" || got.Events != 0 || got.Locks != 0 {
		t.Errorf("the holder's book: %+v", got)
	}

	tab.Click("On / off")
	tab.In("Gate 1 hangs and the patron waits").See(clerk, "Released a lock by force", "patron "+maskID(userID)+
		", held by circulation-1 for")
	tab.Gone(userID)
}

func TestStaffRelease_OfALockThatIsGone(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	userID, _ := p.addPatron(t)
	id := p.acquireLock(t, userID, outlastsTests)
	tab := p.openStaffPage(t, 0)
	tab.Click("Locks now")
	tab.In(maskID(userID)).Click("Release …")
	tab.Click("Release the lock") // without a reason the browser does not send the form
	tab.FocusOn("Reason")
	tab.Fill("Reason", " ")
	tab.Click("Release the lock")
	if e := tab.Find("Reason"); !e.Invalid || !strings.Contains(e.Description, "Say why, in a few words") {
		t.Errorf("the field is %+v, want an error message", e)
	}
	if n := p.countRecords(t, acquirePath+"?userId="+userID); n != 1 {
		t.Errorf("the patron has %d locks, want 1 before the release", n)
	}
	tab.Fill("Reason", "It stays for too long")
	p.releaseLock(t, id)
	tab.Click("Release the lock")
	tab.See("The lock is gone already", "It was released or taken over. Nothing was done.")
	tab.Click("Back to the live locks")
	tab.See("No lock is held now.")
	tab.Goto(p.staffURL(0, "/locks/"+id+"/release"))
	tab.See("The lock is gone already")
	tab.In("Pages").Click("On / off")
	tab.See("No change of this library's settings is on record")
	tab.Gone("Released a lock by force")
}
