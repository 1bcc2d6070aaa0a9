package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

func TestLock_FencesALateCommit(t *testing.T) {
	t.Parallel()
	const notLent, unknown = "was not lent", "CHECK_OUT_OUTCOME_UNKNOWN"
	for _, tt := range []struct {
		name    string
		off     bool
		start   func(*testing.T, stack.Options, int) (*pair, []*link)
		older   bool // a storage that cannot settle
		status  int
		says    string
		refused string // the outcome of the late commits; "" if nothing refuses them
	}{
		{
			name: "with a lock that it takes", start: startPairWithLinks, status: http.StatusServiceUnavailable, says: notLent,
			refused: "given_up",
		},
		{
			name: "with the lock", start: startPairThatAcquires, status: http.StatusServiceUnavailable, says: notLent,
			refused: "given_up",
		},
		{
			name: "without the lock", off: true, start: startPairWithLinks, status: http.StatusServiceUnavailable, says: notLent,
			refused: "given_up",
		},
		{
			name: "with the lock, older storage", start: startPairThatAcquires, older: true,
			status: http.StatusServiceUnavailable, says: notLent, refused: "lock_lost",
		},
		{
			name: "without the lock, older storage", off: true, start: startPairWithLinks, older: true,
			status: http.StatusGatewayTimeout, says: unknown,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := append(slices.Clone(shortWait), fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", !tt.off))
			p, links := tt.start(t, stack.Options{CirculationEnv: env}, 1)
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			open := make(chan struct{})
			arrive := sync.OnceFunc(func() { close(open) })
			t.Cleanup(arrive)
			var late atomic.Int32
			delay := delayCall(open, &late)
			links[0].addFault(linkFault{method: http.MethodPost, path: commitPath, times: always, handle: delay})
			if tt.older {
				links[0].addFault(linkFault{path: settlePath, times: always, handle: answerAsOlder})
			}
			if a := p.lendBook(t, 0, book, patron); a.Status != tt.status || !strings.Contains(string(a.Body), tt.says) {
				t.Fatalf("answered %d %s, want %d: %s", a.Status, a.Body, tt.status, tt.says)
			}
			arrive()
			waitUntil(t, patience, "the late commits are answered", func() bool { return late.Load() == 0 })
			want := untouched
			if tt.refused == "" {
				want = lentOnce
			}
			if got := p.readState(t, id, book); got != want {
				t.Errorf("left %+v, want %+v", got, want)
			}
			refused := sumMetric(t, p, `checkout_commits_total{kind="check-out",outcome="`+tt.refused+`"}`)
			if tt.refused != "" && refused < 1 {
				t.Error("no late commit was refused, want at least one")
			}
		})
	}
}

// A repeat with the key lends another loan than the one that was given up, whose commit comes last.
func TestIdempotencyKey_AfterItsLoanWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprint("lock ", enabled), func(t *testing.T) {
			t.Parallel()
			env := append(slices.Clone(shortWait), fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled))
			p, links := startPairWithLinks(t, stack.Options{Circulations: 2, CirculationEnv: env}, 1)
			id, patron := p.addPatron(t)
			checkOut := p.newCheckOut(p.addBooks(t, 1)[0], patron)
			open := make(chan struct{})
			arrive := sync.OnceFunc(func() { close(open) })
			t.Cleanup(arrive)
			var late atomic.Int32
			delay := delayCall(open, &late)
			links[0].addFault(linkFault{method: http.MethodPost, path: commitPath, times: always, handle: delay})
			if a := p.lendWithKey(t, 0, "k", checkOut); a.Status != http.StatusServiceUnavailable {
				t.Fatalf("answered %d %s, want 503", a.Status, a.Body)
			}
			loan := readObject(t, p.lendWithKey(t, 1, "k", checkOut), http.StatusCreated)
			arrive()
			waitUntil(t, patience, "the late commits are answered", func() bool { return late.Load() == 0 })
			if got := p.readState(t, id, checkOut.ItemBarcode); got != lentOnce {
				t.Errorf("left %+v, want %+v", got, lentOnce)
			}
			if again := readObject(t, p.lendWithKey(t, 1, "k", checkOut), http.StatusCreated); again["id"] != loan["id"] {
				t.Errorf("the next repeat got the loan %v, want %v", again["id"], loan["id"])
			}
		})
	}
}

// A commit is delayed, its repeat is refused by the limit, and then a book comes back. The delayed
// commit would lend if it found the lock.
func TestLock_FencesADelayedCommitBeforeARefusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		takes       bool // the commit takes the lock
		releases    int  // that a proxy answers
		settlements int  // that a proxy answers
		older       bool // a storage that cannot settle
		status      int
		says        string
		lends       int // by the delayed commit
	}{
		{name: "the commit takes the lock", takes: true, status: http.StatusUnprocessableEntity, says: "maximum limit"},
		{
			name: "the commit takes the lock, and all settlements are lost", takes: true, settlements: always,
			status: http.StatusGatewayTimeout, says: "CHECK_OUT_OUTCOME_UNKNOWN", lends: 1, // as the answer says, it may
		},
		{name: "all calls arrive", status: http.StatusUnprocessableEntity, says: "maximum limit"},
		{name: "the release is lost", releases: 1, status: http.StatusUnprocessableEntity, says: "maximum limit"},
		{name: "a settlement is lost", settlements: 1, status: http.StatusUnprocessableEntity, says: "maximum limit"},
		{
			name: "all settlements are lost", settlements: always, status: http.StatusGatewayTimeout,
			says: "CHECK_OUT_OUTCOME_UNKNOWN",
		},
		{name: "older storage", older: true, status: http.StatusUnprocessableEntity, says: "maximum limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p *pair
			var id, book, otherID, other, patron string
			start, step := startPairThatAcquires, circulation.Locked
			if tt.takes {
				start, step = startPairWithLinks, circulation.Validated
			}
			p, links := start(t, stack.Options{
				CirculationEnv: shortWait, OnStep: atStep(0, step, func() { p.lendPastTheLock(t, id, otherID) }),
			}, 1)
			id, patron = p.addPatron(t)
			book = p.addBooks(t, 1)[0]
			otherID, other = p.addItem(t)
			open := make(chan struct{})
			arrive := sync.OnceFunc(func() { close(open) })
			t.Cleanup(arrive)
			var late atomic.Int32
			links[0].addFault(linkFault{method: http.MethodPost, path: commitPath, times: 1, handle: delayCall(open, &late)})
			links[0].addFault(linkFault{
				method: http.MethodDelete, path: acquirePath, times: tt.releases, handle: answerWith(http.StatusBadGateway),
			})
			links[0].addFault(linkFault{path: settlePath, times: tt.settlements, handle: answerWith(http.StatusBadGateway)})
			if tt.older {
				links[0].addFault(linkFault{path: settlePath, times: always, handle: answerAsOlder})
			}
			if a := p.lendBook(t, 0, book, patron); a.Status != tt.status || !strings.Contains(string(a.Body), tt.says) {
				t.Errorf("answered %d %s, want %d %s", a.Status, a.Body, tt.status, tt.says)
			}
			readObject(t, p.checkInItem(t, other, p.ServicePointID), http.StatusOK)
			arrive()
			waitUntil(t, patience, "the late commit is answered", func() bool { return late.Load() == 0 })
			if n := p.countOpenLoans(t, id); n != tt.lends {
				t.Errorf("the patron has %d books after the delayed commit, want %d", n, tt.lends)
			}
			if tt.releases == 0 {
				p.checkNoLocks(t)
			}
		})
	}
}

// lendPastTheLock stores a loan as staff do.
func (p *pair) lendPastTheLock(t *testing.T, patronID, itemID string) {
	t.Helper()
	loan := setFields(newLoan(itemID), record{
		"userId": patronID, "status": record{"name": "Open"}, "dueDate": "2026-04-01T10:00:00Z",
	})
	if _, err := p.Storage.Must(context.Background(), http.MethodPost, "/loan-storage/loans", loan); err != nil {
		t.Error(err)
	}
}

// A check-out that is refused under the lock releases it. Without that, the lock lives for a minute.
func TestLock_ReleaseWithALostAnswer(t *testing.T) {
	t.Parallel()
	var p *pair
	var id, otherID string
	p, links := startPairThatAcquires(t, stack.Options{
		CirculationEnv: shortWait, OnStep: atStep(0, circulation.Locked, func() { p.lendPastTheLock(t, id, otherID) }),
	}, 1)
	id, patron := p.addPatron(t)
	otherID, _ = p.addItem(t)
	links[0].addFault(linkFault{method: http.MethodDelete, path: acquirePath, times: 1, handle: loseAnswer})
	checkAtTheLimit(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron))
	p.checkNoLocks(t)
}

func TestLock_LostRelease(t *testing.T) {
	t.Parallel()
	p, links := startPairThatAcquires(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=500")}, 2)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	links[0].addFault(linkFault{method: http.MethodDelete, path: acquirePath, times: always, handle: loseRequest})
	links[0].addFault(linkFault{path: commitPath, times: always, handle: answerWith(http.StatusBadRequest)})
	if a := p.lendBook(t, 0, books[0], patron); a.Status != http.StatusBadRequest {
		t.Fatalf("answered %d %s, want 400 for a commit that storage refused", a.Status, a.Body)
	}
	want := untouched
	want.Locks = 1
	if got := p.readState(t, id, books[0]); got != want {
		t.Errorf("left %+v, want %+v", got, want)
	}
	links[0].removeFaults()
	if a := p.lendBook(t, 0, books[1], patron); a.Status != http.StatusCreated {
		t.Errorf("the next check-out was answered %d %s", a.Status, a.Body)
	}
	p.checkNoLocks(t)
}

func TestLock_WaiterHangsUp(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=60000")}, 2)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	held := p.acquireLock(t, id, outlastsTests)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	leaves := p.startLending(ctx, t, 0, books[0], patron)
	p.waitForWaiters(t, 1)
	stays := p.startLending(t.Context(), t, 1, books[1], patron)
	p.waitForWaiters(t, 2)
	hangUp()
	leaves.awaitAnswer()
	p.waitForWaiters(t, 1)
	p.releaseLock(t, held)
	if a := stays.awaitAnswer(); a.Status != http.StatusCreated {
		t.Errorf("the next waiter was answered %d %s", a.Status, a.Body)
	}
	got := p.readState(t, id, books[0])
	want := untouched
	want.Loans, want.History, want.Sessions = 1, 1, 1 // of the other book
	if got != want {
		t.Errorf("the book of the machine that left: %+v, want %+v", got, want)
	}
}

func TestLock_TakenOverHolderAcquiresAgain(t *testing.T) {
	t.Parallel()
	var p *pair
	var id string
	var once sync.Once
	takeOver := func() { once.Do(func() { p.acquireLock(t, id, 0) }) }
	p, _ = startPairThatAcquires(t, stack.Options{
		CirculationEnv: enableLock("LOCK_TTL_MS=60000"), OnStep: atStep(0, circulation.Locked, takeOver),
	}, 1)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	if a := p.lendBook(t, 0, book, patron); a.Status != http.StatusCreated {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if got := p.readState(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
	if n := sumMetric(t, p, `checkout_commits_total{kind="check-out",outcome="lock_lost"}`); n != 1 {
		t.Errorf("the fence refused %v commits, want 1", n)
	}
}

func TestLock_RefusesAHolderThatSlept(t *testing.T) {
	t.Parallel()
	var p *pair
	var id string
	granted, wakeUp := make(chan struct{}), make(chan struct{})
	var once sync.Once
	sleep := func() {
		once.Do(func() {
			close(granted)
			<-wakeUp
		})
	}
	p, _ = startPairThatAcquires(t, stack.Options{
		Circulations: 2, CirculationEnv: enableLock(),
		OnStep: atStep(0, circulation.Locked, sleep),
	}, 1)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	sleeper := p.startLending(t.Context(), t, 0, books[0], patron)
	<-granted
	p.acquireLock(t, id, 0)
	if a := p.lendBook(t, 1, books[1], patron); a.Status != http.StatusCreated {
		t.Errorf("the second machine was answered %d %s", a.Status, a.Body)
	}
	close(wakeUp)
	if a := sleeper.awaitAnswer(); a.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(a.Body), "maximum limit of 1 items") {
		t.Errorf("the sleeper was answered %d %s, want 422 and the limit", a.Status, a.Body)
	}
	want := untouched
	want.Loans, want.History, want.Sessions = 1, 1, 1
	if got := p.readState(t, id, books[0]); got != want {
		t.Errorf("the sleeper left %+v, want %+v", got, want)
	}
}

func TestLock_LostGrant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  linkFault
		status int
	}{
		"both answers are lost": {linkFault{times: 2, handle: loseAnswer}, http.StatusServiceUnavailable},
		"the answer is replaced by a 500": {
			linkFault{times: 1, handle: replaceAnswer(http.StatusInternalServerError)}, http.StatusInternalServerError,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := startPairThatAcquires(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=600000")}, 1)
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			tt.fault.method, tt.fault.path = http.MethodPost, acquirePath
			links[0].addFault(tt.fault)
			if a := p.lendBook(t, 0, book, patron); a.Status != tt.status {
				t.Errorf("answered %d %s, want %d", a.Status, a.Body, tt.status)
			}
			if got := p.readState(t, id, book); got != untouched {
				t.Errorf("left %+v, want %+v", got, untouched)
			}
			if a := p.lendBook(t, 0, book, patron); a.Status != http.StatusCreated {
				t.Errorf("the next try was answered %d %s", a.Status, a.Body)
			}
		})
	}
}

// replaceAnswer forwards the call and answers with another status.
func replaceAnswer(status int) faultHandler {
	return func(w http.ResponseWriter, _ *http.Request, pass func()) {
		pass()
		w.WriteHeader(status)
	}
}
