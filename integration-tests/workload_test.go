package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// workload is a number of machines. Each sends check-outs of random books to random
// patrons, one after the other.
type workload struct {
	p    *pair
	wg   sync.WaitGroup
	stop chan struct{}
	rest time.Duration // after a refusal

	mu             sync.Mutex
	patrons, books []string
	lent           []string // the ids of acknowledged loans
	lastLent       time.Time
	pause          time.Duration // the longest time between two loans
	failed         int           // answers other than 201 and 422
	badAnswers     []string      // failures other than 503 and 504 with a message
}

func (m *workload) runMachine(t *testing.T, i int) {
	for {
		select {
		case <-m.stop:
			return
		default:
		}
		book, patron := m.pickCheckOut()
		a, err := m.p.machines[i%len(m.p.machines)].Do(t.Context(), http.MethodPost, checkOutPath,
			m.p.newCheckOut(book, patron))
		if m.recordAnswer(a, err); a.Status != http.StatusCreated {
			m.awaitRest()
		}
	}
}

func (m *workload) awaitRest() {
	select {
	case <-time.After(m.rest):
	case <-m.stop:
	}
}

func (m *workload) pickCheckOut() (book, patron string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.books[rand.N(len(m.books))], m.patrons[rand.N(len(m.patrons))]
}

// assign replaces the machines' patrons and books.
func (m *workload) assign(patrons, books []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.patrons, m.books = patrons, books
}

func (m *workload) recordAnswer(a stack.Answer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var loan struct{ ID string }
	switch {
	case err == nil && a.Status == http.StatusCreated && a.JSON(&loan) == nil:
		m.noteLoan(loan.ID)
		return
	case err == nil && a.Status == http.StatusUnprocessableEntity:
		return
	}
	m.failed++
	clear := a.Status == http.StatusServiceUnavailable || a.Status == http.StatusGatewayTimeout
	if err != nil || !clear || len(a.Body) == 0 || strings.Contains(string(a.Body), "SQLSTATE") {
		m.badAnswers = append(m.badAnswers, fmt.Sprintf("%d %s %v", a.Status, a.Body, err))
	}
}

func (m *workload) noteLoan(id string) {
	m.lent = append(m.lent, id)
	if !m.lastLent.IsZero() {
		m.pause = max(m.pause, time.Since(m.lastLent))
	}
	m.lastLent = time.Now()
}

// waitForOutcomes waits until so many more check-outs were lent and have failed.
func (m *workload) waitForOutcomes(t *testing.T, lent, failed int) {
	t.Helper()
	count := func() (int, int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.lent), m.failed
	}
	lentBefore, failedBefore := count()
	waitUntil(t, patience, fmt.Sprintf("%d more loans and %d more failures", lent, failed), func() bool {
		l, f := count()
		return l >= lentBefore+lent && f >= failedBefore+failed
	})
}

// startWorkload runs n machines until the test ends or end is called.
func startWorkload(t *testing.T, p *pair, n int, patrons, books []string) (m *workload, end func()) {
	t.Helper()
	return startPatientWorkload(t, p, n, patrons, books, 0)
}

// startPatientWorkload is startWorkload with machines that rest after a refusal.
func startPatientWorkload(t *testing.T, p *pair, n int, patrons, books []string, rest time.Duration) (
	m *workload, end func(),
) {
	t.Helper()
	m = &workload{p: p, stop: make(chan struct{}), rest: rest, patrons: patrons, books: books}
	for i := range n {
		m.wg.Go(func() { m.runMachine(t, i) })
	}
	end = sync.OnceFunc(func() {
		close(m.stop)
		m.wg.Wait()
	})
	t.Cleanup(end)
	return m, end
}
