package integration_test

import (
	"testing"
	"time"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// As after a double click, or an answer that was lost: the same form comes again.
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
		tab.In("Sent twice to turn it on").See("Lock: on, before that the service's own setting")
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
		t.Errorf("%d changes are kept, made were 2", n)
	}
}

func TestStaffForm_ReleasesALockTwice(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock()}, 1)
	userID, _ := p.addPatron(t)
	id := p.acquireLock(t, userID, time.Minute)
	first, second := p.openStaffPage(t, 0), p.openStaffPage(t, 1)
	first.Goto(p.staffURL(0, "/locks/"+id+"/release"))
	second.Goto(p.staffURL(1, "/locks/"+id+"/release"))
	first.Fill("Reason", "First of two")
	second.Fill("Reason", "Second of two")
	first.Click("Release the lock")
	first.See("The lock was released.")
	second.Click("Release the lock")
	second.See("The lock is gone already", "Nothing was done")
	second.In("Pages").Click("Feature")
	second.In("First of two").See("Released a lock by force")
	second.Gone("Second of two")
}
