package integration_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

func TestACommitThatArrivesTooLateIsFencedOff(t *testing.T) {
	t.Parallel()
	p, links := linked(t, stack.Options{CirculationEnv: patient}, 1)
	id, patron := p.patron(t)
	book := p.books(t, 1)[0]
	open := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(open) })
	t.Cleanup(arrive)
	var late atomic.Int32
	links[0].add(linkFault{method: http.MethodPost, path: commitPath, times: always, befall: holdUp(open, &late)})
	if a := p.lend(t, 0, book, patron); a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "was not lent") {
		t.Fatalf("answered %d %s, want 503: the item was not lent", a.Status, a.Body)
	}
	arrive()
	eventually(t, patience, "the late commits are answered", func() bool { return late.Load() == 0 })
	if got := p.state(t, id, book); got != untouched {
		t.Errorf("left %+v, want %+v", got, untouched)
	}
	if n := metric(t, p, `checkout_commits_total{kind="check-out",outcome="lock_lost"}`); n < 1 {
		t.Error("no commit came late: the test did not see what it is for")
	}
}

func TestALostReleaseHoldsThePatronUpForATTLAtMost(t *testing.T) {
	t.Parallel()
	p, links := linked(t, stack.Options{CirculationEnv: on("LOCK_TTL_MS=500")}, 2)
	id, patron := p.patron(t)
	books := p.books(t, 2)
	links[0].add(linkFault{method: http.MethodDelete, path: acquirePath, times: always, befall: loseRequest})
	if a := p.lend(t, 0, books[0], patron); a.Status != http.StatusCreated {
		t.Fatalf("answered %d %s", a.Status, a.Body)
	}
	want := lentOnce
	want.Locks = 1
	if got := p.state(t, id, books[0]); got != want {
		t.Errorf("left %+v, want %+v", got, want)
	}
	links[0].mend()
	if a := p.lend(t, 0, books[1], patron); a.Status != http.StatusCreated {
		t.Errorf("the next check-out was answered %d %s", a.Status, a.Body)
	}
	p.noLocksLeft(t)
}

func TestAMachineThatLeavesWhileItWaitsBlocksNobody(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{Circulations: 2, CirculationEnv: on("LOCK_TTL_MS=60000")}, 2)
	id, patron := p.patron(t)
	books := p.books(t, 2)
	held := p.lock(t, id, time.Minute)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	leaves := p.lendLater(ctx, t, 0, books[0], patron)
	p.waiting(t, 1)
	stays := p.lendLater(t.Context(), t, 1, books[1], patron)
	p.waiting(t, 2)
	hangUp()
	leaves.wait()
	p.waiting(t, 1)
	p.unlock(t, held)
	if a := stays.wait(); a.Status != http.StatusCreated {
		t.Errorf("the machine behind it was answered %d %s", a.Status, a.Body)
	}
	got := p.state(t, id, books[0])
	want := untouched
	want.Loans, want.Sessions = 1, 1 // the other book's
	if got != want {
		t.Errorf("the book of the machine that left: %+v, want %+v", got, want)
	}
}

func TestAHolderWhoseLockWasTakenOverLendsWithANewOne(t *testing.T) {
	t.Parallel()
	var p *pair
	var id string
	var once sync.Once
	takeOver := func() { once.Do(func() { p.lock(t, id, 0) }) }
	p = start(t, stack.Options{
		CirculationEnv: on("LOCK_TTL_MS=60000"),
		Observe:        func(int) circulation.Observer { return stepHook{step: circulation.Recounted, do: takeOver} },
	}, 1)
	id, patron := p.patron(t)
	book := p.books(t, 1)[0]
	if a := p.lend(t, 0, book, patron); a.Status != http.StatusCreated {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if got := p.state(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
	if n := metric(t, p, `checkout_commits_total{kind="check-out",outcome="lock_lost"}`); n != 1 {
		t.Errorf("the fence refused %v commits, want 1", n)
	}
}

func TestAHolderThatSleptThroughALendingIsRefused(t *testing.T) {
	t.Parallel()
	var p *pair
	var id string
	recounted, wakeUp := make(chan struct{}), make(chan struct{})
	var once sync.Once
	sleep := func() {
		once.Do(func() {
			close(recounted)
			<-wakeUp
		})
	}
	p = start(t, stack.Options{
		Circulations: 2, CirculationEnv: on(),
		Observe: func(i int) circulation.Observer {
			if i == 1 {
				return circulation.NoObserver{}
			}
			return stepHook{step: circulation.Recounted, do: sleep}
		},
	}, 1)
	id, patron := p.patron(t)
	books := p.books(t, 2)
	sleeper := p.lendLater(t.Context(), t, 0, books[0], patron)
	<-recounted
	p.lock(t, id, 0)
	if a := p.lend(t, 1, books[1], patron); a.Status != http.StatusCreated {
		t.Errorf("the second machine was answered %d %s", a.Status, a.Body)
	}
	close(wakeUp)
	if a := sleeper.wait(); a.Status != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), "maximum limit of 1 items") {
		t.Errorf("the sleeper was answered %d %s, want 422 and the limit", a.Status, a.Body)
	}
	want := untouched
	want.Loans, want.Sessions = 1, 1
	if got := p.state(t, id, books[0]); got != want {
		t.Errorf("the sleeper left %+v, want %+v", got, want)
	}
}
