package integration_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// heldCommits delays commits until they are released, and drops their answers. Repeats of a
// commit are delayed too.
type heldCommits struct {
	release func()

	open  chan struct{}
	mu    sync.Mutex
	loans map[string]bool // the ids of their loans
}

// holdCommits returns a fault handler's state. The end of the test releases the commits.
func holdCommits(t *testing.T) *heldCommits {
	t.Helper()
	h := &heldCommits{open: make(chan struct{}), loans: map[string]bool{}}
	h.release = sync.OnceFunc(func() { close(h.open) })
	t.Cleanup(h.release)
	return h
}

// delay is the fault handler.
func (h *heldCommits) delay(_ http.ResponseWriter, r *http.Request, forward func()) {
	var commit struct{ Loan struct{ ID string } }
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &commit) != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.mu.Lock()
	h.loans[commit.Loan.ID] = true
	h.mu.Unlock()
	<-h.open
	loseAnswer(nil, nil, forward)
}

func (h *heldCommits) countCommits() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.loans)
}

func TestSettings_TurnOnDuringCommits(t *testing.T) {
	t.Parallel()
	p, links := startPairWithLinks(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock("CHECKOUT_LOCK_FEATURE_ENABLED=false"),
	}, 2)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 6)
	held := holdCommits(t)
	for _, l := range links {
		l.addFault(linkFault{method: http.MethodPost, path: commitPath, times: always, handle: held.delay})
	}
	lendings := make([]lending, len(books))
	for i, book := range books {
		lendings[i] = p.startLending(t.Context(), t, i%2, book, patron)
	}
	waitUntil(t, patience, "all are about to commit without a lock",
		func() bool { return held.countCommits() == len(books) })
	p.changeSettings(t, 0, record{"enabled": true})
	for _, l := range links {
		l.removeFaults()
	}
	held.release()
	lent := 0
	for i, l := range lendings {
		a := l.awaitAnswer()
		if a.Status == http.StatusServiceUnavailable { // held for longer than circulation waits, so the machine repeats it
			a = p.lendBook(t, i%2, books[i], patron)
		}
		if a.Status == http.StatusCreated {
			lent++
		} else {
			checkAtTheLimit(t, a)
		}
	}
	if n := p.countOpenLoans(t, userID); lent != 2 || n != 2 {
		t.Errorf("%d were lent, %d loans are open, want the limit of 2", lent, n)
	}
	p.checkNoLocks(t)
}

// newBurst returns patrons, and for each of them that many check-outs.
func (p *pair) newBurst(t *testing.T, patrons, each int) (ids []string, all []stack.CheckOut) {
	t.Helper()
	for range patrons {
		id, patron := p.addPatron(t)
		ids = append(ids, id)
		for _, book := range p.addBooks(t, each) {
			all = append(all, p.newCheckOut(book, patron))
		}
	}
	return ids, all
}

// sendBurst sends check-outs at once. Each must be answered, and none with a 5xx.
func (p *pair) sendBurst(t *testing.T, all []stack.CheckOut) {
	t.Helper()
	for _, o := range stack.SendBurst(t.Context(), p.machines, all) {
		if o.Err != nil || o.Status >= http.StatusInternalServerError {
			t.Errorf("a check-out failed: %d %s %v", o.Status, o.Body, o.Err)
		}
	}
}

func TestSettings_TurnOnUnderLoad(t *testing.T) {
	t.Parallel()
	const limit, patrons, each = 2, 4, 12
	p := startPair(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock("CHECKOUT_LOCK_FEATURE_ENABLED=false"),
	}, limit)
	earlyIDs, early := p.newBurst(t, patrons, each)
	laterIDs, later := p.newBurst(t, patrons, each)
	var running sync.WaitGroup
	running.Go(func() { p.sendBurst(t, early) })
	waitUntil(t, patience, "check-outs run", func() bool {
		return sumMetric(t, p, `checkout_commits_total{kind="check-out",outcome="committed"}`) > 0
	})
	p.changeSettings(t, 0, record{"enabled": true})
	before := make([]int, len(earlyIDs))
	for i, id := range earlyIDs {
		before[i] = p.countOpenLoans(t, id)
	}
	running.Go(func() { p.sendBurst(t, later) })
	running.Wait()
	for i, id := range earlyIDs {
		if n := p.countOpenLoans(t, id); n > max(limit, before[i]) {
			t.Errorf("a patron had %d loans when the lock was switched on, and has %d", before[i], n)
		}
	}
	for _, id := range laterIDs {
		if n := p.countOpenLoans(t, id); n != limit {
			t.Errorf("a patron has %d loans, want %d", n, limit)
		}
	}
	p.checkNoLocks(t)
}

// The lock goes on and off every 200 ms while check-outs run. Each is answered, and is lent wholly or
// not at all. It goes on for good while check-outs are about to commit without it. The limit holds for
// them: the fence of the settings refuses those commits.
func TestSettings_SwitchedAgainAndAgain(t *testing.T) {
	t.Parallel()
	const limit, patrons, each = 2, 4, 12
	p, links := startPairWithLinks(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock("CHECKOUT_LOCK_FEATURE_ENABLED=false"),
	}, limit)
	switched, stop := 0, make(chan struct{})
	var switching sync.WaitGroup
	switching.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				switched++
				p.changeSettings(t, switched%2, record{"enabled": switched%2 == 1})
			}
		}
	})
	for range timesInTorture(3, 30) {
		_, all := p.newBurst(t, patrons, each)
		p.sendBurst(t, all)
	}
	close(stop)
	switching.Wait()

	p.changeSettings(t, 0, record{"enabled": false})
	held := holdCommits(t)
	links[0].addFault(linkFault{method: http.MethodPost, path: commitPath, times: always, handle: held.delay})
	first := *p // its other instance may not know yet that the lock is off
	first.machines = p.machines[:1]
	ids, all := first.newBurst(t, patrons, each/2)
	var last sync.WaitGroup
	last.Go(func() { first.sendBurst(t, all) })
	waitUntil(t, patience, "all are about to commit without a lock", func() bool {
		return held.countCommits() == len(all)
	})
	p.changeSettings(t, 0, record{"enabled": true})
	links[0].removeFaults()
	held.release()
	last.Wait()
	for _, id := range ids {
		if n := p.countOpenLoans(t, id); n != limit {
			t.Errorf("a patron has %d loans, want %d", n, limit)
		}
	}
	t.Logf("the lock was switched %d times", switched)
	p.checkLoansAndItemsAgree(t)
	p.checkNoLocks(t)
}
