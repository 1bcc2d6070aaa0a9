package integration_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// stopped is a check-out that stops once it has counted the loans again with the
// lock, as one on a machine that hangs. Later ones do not stop.
type stopped struct {
	circulation.NoObserver
	counted, goOn chan struct{}
	once          *sync.Once
	again         chan string // why its commit was repeated
}

func newStopped() stopped {
	return stopped{
		counted: make(chan struct{}), goOn: make(chan struct{}), once: new(sync.Once), again: make(chan string, 10),
	}
}

func (s stopped) Reached(_ context.Context, step circulation.Step, _ time.Duration) {
	if step == circulation.Recounted {
		s.once.Do(func() {
			close(s.counted)
			<-s.goOn
		})
	}
}

func (s stopped) Again(reason string) { s.again <- reason }

func TestStaffReleaseALockByForceAndItsHolderIsRefused(t *testing.T) {
	t.Parallel()
	holder := newStopped()
	p := start(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: append(on("LOCK_TTL_MS=600000"), signedIn()...),
		Observe: func(i int) circulation.Observer {
			if i == 0 {
				return holder
			}
			return circulation.NoObserver{}
		},
	}, 1)
	userID, patron := p.patron(t)
	books := p.books(t, 2)
	goOn := sync.OnceFunc(func() { close(holder.goOn) })
	t.Cleanup(goOn)
	const requestID = "gate-1/check-out-17"
	p.machines[0].Header = http.Header{"X-Okapi-Request-Id": {requestID}}
	hangs := p.lendLater(t.Context(), t, 0, books[0], patron)
	<-holder.counted
	waits := p.lendLater(t.Context(), t, 1, books[1], patron)
	p.waiting(t, 1)

	tab := p.staff(t, 1, browser.BasicAuth(clerk, clerkPassword))
	tab.Click("Live locks")
	tab.In(masked(userID)).See("Held", "circulation-1", requestID[:8])
	tab.In(masked(userID)).Click("Release …")
	tab.See("Release this lock?", masked(userID), "circulation-1", requestID, "Why it is safe",
		"it is refused. If its machine still waits, it takes the lock again and counts the loans again")
	tab.Click("Release the lock") // without a reason the browser does not send the form
	tab.FocusOn("Reason")
	tab.Fill("Reason", " ")
	tab.Click("Release the lock")
	if e := tab.Find("Reason"); !e.Invalid || !strings.Contains(e.Description, "Say why, in a few words") {
		t.Errorf("the field is %+v, want the message at it", e)
	}
	if n := p.total(t, acquirePath+"?userId="+userID); n != 1 {
		t.Errorf("%d locks of the patron, want the one that nobody has released yet", n)
	}
	tab.Fill("Reason", "Gate 1 hangs and the patron waits")
	tab.Click("Release the lock")
	tab.See("The lock was released.")

	object(t, waits.wait(), http.StatusCreated) // the one that waited lends at once
	goOn()
	if got := text(refusals(t, hangs.wait(), http.StatusUnprocessableEntity)); !strings.Contains(got, "maximum limit of 1 items") {
		t.Errorf("the holder was refused with %q, want the limit", got)
	}
	select {
	case why := <-holder.again:
		if why != "LOCK_LOST" || len(holder.again) > 0 {
			t.Errorf("the holder's commit was repeated for %s, and %d times more; want once for LOCK_LOST", why, len(holder.again))
		}
	default:
		t.Error("the holder's commit was not refused for the lost lock")
	}
	if n := p.open(t, userID); n != 1 {
		t.Errorf("the patron has %d loans, the limit is 1", n)
	}
	if got := p.state(t, userID, books[0]); got.Status != "Available" || got.Events != 0 || got.Locks != 0 {
		t.Errorf("the holder's book: %+v", got)
	}

	tab.Click("Feature")
	tab.In("Gate 1 hangs and the patron waits").See(clerk, "Released a lock by force", "patron "+masked(userID)+", held by circulation-1 for")
	tab.Gone(userID)
}

func TestStaffAreToldCalmlyThatALockIsGone(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 1)
	userID, _ := p.patron(t)
	id := p.lock(t, userID, time.Minute)
	tab := p.staff(t, 0)
	tab.Click("Live locks")
	tab.In(masked(userID)).Click("Release …")
	tab.Fill("Reason", "It stays for too long")
	p.unlock(t, id)
	tab.Click("Release the lock")
	tab.See("The lock is gone already", "It was released or taken over. Nothing was done.")
	tab.Click("Back to the live locks")
	tab.See("No lock is held now.")
	tab.Goto(p.staffURL(0, "/locks/"+id+"/release"))
	tab.See("The lock is gone already")
	tab.In("Pages").Click("Feature")
	tab.See("Nobody has changed the settings of this library")
	tab.Gone("Released a lock by force")
}
