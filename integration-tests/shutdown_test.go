package integration_test

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

func TestShutdown_StorageAnswersItsWaiters(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2}, 1)
	id, _ := p.addPatron(t)
	p.acquireLock(t, id, outlastsTests)
	const wait = 10 * time.Second
	answered := make(chan stack.Answer, 1)
	began := time.Now()
	var took time.Duration
	go func() {
		a, err := p.storageAt(1).Do(t.Context(), http.MethodPost, acquirePath, map[string]any{
			"userId": id, "ttlMs": 60000, "waitMs": wait.Milliseconds(),
		})
		if err != nil {
			t.Errorf("the waiter got no answer: %v", err)
		}
		took = time.Since(began)
		answered <- a
	}()
	p.waitForWaiters(t, 1)
	if err := p.StopStorage(1); err != nil {
		t.Errorf("stopping: %v", err)
	}
	a := <-answered
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("X-Fault-Code") != "LOCK_HELD" {
		t.Errorf("the waiter was answered %d %s", a.Status, a.Body)
	}
	if took >= wait {
		t.Errorf("it waited for %s, want less than %s", took, wait)
	}
}

func TestShutdown_WaitContinuesInAnotherStorage(t *testing.T) {
	t.Parallel()
	p, links := startPairWithLinks(t, stack.Options{
		Storages: 2, Circulations: 2,
		CirculationEnv: enableLock("LOCK_TTL_MS=60000", "RETRY_INTERVAL_MS=500|500|10000|10000"),
	}, 1)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	held := p.acquireLock(t, id, outlastsTests)
	later := p.startLending(t.Context(), t, 1, book, patron)
	p.waitForWaiters(t, 1)
	links[1].setTarget(t, p.Storages[0])
	if err := p.StopStorage(1); err != nil {
		t.Errorf("stopping: %v", err)
	}
	waitUntil(t, patience, "the check-out waits in the other storage", func() bool {
		return strings.Contains(p.readMetrics(t, p.Storages[0]), "checkout_lock_waiting 1\n")
	})
	p.releaseLock(t, held)
	if a := later.awaitAnswer(); a.Status != http.StatusCreated {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if got := p.readState(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
}

func TestShutdown_CheckOutWithoutStorage(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock()}, 1)
	_, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	if err := p.StopStorage(1); err != nil {
		t.Errorf("stopping: %v", err)
	}
	a := p.lendBook(t, 1, book, patron)
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "Storage was not reached") {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	checkHealth(t, p.Circulations[1], http.StatusServiceUnavailable)
	if a := p.lendBook(t, 0, book, patron); a.Status != http.StatusCreated {
		t.Errorf("the other instance answered %d %s", a.Status, a.Body)
	}
}

func TestShutdown_CirculationFinishesItsCheckOuts(t *testing.T) {
	t.Parallel()
	granted, goOn := make(chan struct{}), make(chan struct{})
	proceed := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(proceed)
	p, _ := startPairThatAcquires(t, stack.Options{
		CirculationEnv: enableLock("LOCK_TTL_MS=60000"),
		OnStep: atStep(0, circulation.Locked, func() {
			close(granted)
			<-goOn
		}),
	}, 1)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	running := p.startLending(t.Context(), t, 0, book, patron)
	<-granted
	stopped := make(chan error, 1)
	go func() { stopped <- p.StopCirculation(0) }()
	u, err := url.Parse(p.Circulations[0])
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, patience, "circulation refuses new connections", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
		if err != nil {
			return true
		}
		return conn.Close() != nil
	})
	proceed()
	if a := running.awaitAnswer(); a.Status != http.StatusCreated {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
	if got := p.readState(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
}

// The test is not parallel, because it compares all goroutines before and after.
func TestShutdown_LeavesNothingRunning(t *testing.T) {
	database := databaseURL(t)
	before := goleak.IgnoreCurrent()
	s, err := stack.Start(t.Context(), stack.Options{
		DatabaseURL: database, Storages: 2, Circulations: 2, CirculationEnv: enableLock(),
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 10}
	client := &http.Client{Transport: transport}
	tenant := "it_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
	st := stack.Client{Base: s.Storages[0], Tenant: tenant, HTTP: client, Check: checkAnswer}
	lib, err := stack.NewLibrary(t.Context(), st, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{Stack: s, Library: lib, databaseURL: database}
	var all []stack.CheckOut
	for _, base := range s.Circulations {
		st.Base = base
		p.machines = append(p.machines, st)
	}
	_, patron := p.addPatron(t)
	for _, book := range p.addBooks(t, 6) {
		all = append(all, p.newCheckOut(book, patron))
	}
	if sum := stack.Summarize(stack.SendBurst(t.Context(), p.machines, all)); sum.Lent != 2 {
		t.Errorf("lent %d, refused %v, failed %d", sum.Lent, sum.Refused, sum.Failed)
	}
	if _, err := lib.Storage.Must(t.Context(), http.MethodPost, "/_/tenant", map[string]any{"purge": true}); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	var left error
	defer func() {
		if left != nil {
			t.Error(left)
		}
	}()
	waitUntil(t, patience, "all goroutines have ended", func() bool {
		left = goleak.Find(before)
		return left == nil
	})
}
