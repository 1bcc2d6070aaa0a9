package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// workload send check-outs of any book to any patron, one after the other,
// until they are told to stop.
type workload struct {
	p              *pair
	wg             sync.WaitGroup
	stop           chan struct{}
	mu             sync.Mutex
	patrons, books []string
	lent           []string // the loans that were acknowledged
	failed         int
	badAnswers     []string
}

func (m *workload) runMachine(t *testing.T, i int) {
	for {
		select {
		case <-m.stop:
			return
		default:
		}
		book, patron := m.pickCheckOut()
		a, err := m.p.machines[i%len(m.p.machines)].Do(t.Context(), http.MethodPost, "/circulation/check-out-by-barcode", m.p.newCheckOut(book, patron))
		m.recordAnswer(a, err)
	}
}

func (m *workload) pickCheckOut() (book, patron string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.books[rand.N(len(m.books))], m.patrons[rand.N(len(m.patrons))]
}

// assign gives the machines other patrons and books.
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
		m.lent = append(m.lent, loan.ID)
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

// waitForOutcomes waits for n more lendings and failures.
func (m *workload) waitForOutcomes(t *testing.T, lent, failed int) {
	t.Helper()
	count := func() (int, int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.lent), m.failed
	}
	lentBefore, failedBefore := count()
	waitUntil(t, patience, fmt.Sprintf("%d lendings and %d failures more", lent, failed), func() bool {
		l, f := count()
		return l >= lentBefore+lent && f >= failedBefore+failed
	})
}

func TestOutage_KeepsAcknowledgedLoans(t *testing.T) {
	t.Parallel()
	const limit = 3
	pg := startPostgreSQL(t)
	p := startPair(t, stack.Options{DatabaseURL: pg.URL(), Storages: 2, Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=500")}, limit)
	m := &workload{p: p, stop: make(chan struct{})}
	ids := make([]string, 30)
	patrons, books := make([]string, len(ids)), p.addBooks(t, 4*len(ids))
	for i := range ids {
		ids[i], patrons[i] = p.addPatron(t)
	}
	// Half of them come afterwards, when the others may have all that they are lent.
	m.assign(patrons[:15], books[:60])
	for i := range 6 {
		m.wg.Go(func() { m.runMachine(t, i) })
	}
	end := sync.OnceFunc(func() {
		close(m.stop)
		m.wg.Wait()
	})
	t.Cleanup(end)

	m.waitForOutcomes(t, 8, 0)
	if err := pg.Kill(); err != nil {
		t.Fatal(err)
	}
	m.waitForOutcomes(t, 0, 12)
	everywhere := append(slices.Clone(p.Storages), p.Circulations...)
	for _, base := range everywhere {
		checkHealth(t, base, http.StatusServiceUnavailable)
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, base := range everywhere {
		waitUntil(t, patience, base+" ready again", func() bool {
			return callEndpoint(t, stack.Client{Base: base, HTTP: burstClient}, http.MethodGet, "/admin/health/ready", nil).Status == http.StatusOK
		})
	}
	m.assign(patrons[15:], books[60:])
	m.waitForOutcomes(t, 8, 0)
	end()

	if len(m.badAnswers) > 0 {
		t.Errorf("machines were answered %q", m.badAnswers)
	}
	for _, loan := range m.lent {
		if a := callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/loans/"+loan, nil); a.Status != http.StatusOK {
			t.Errorf("the loan %s was acknowledged, and now: %d %s", loan, a.Status, a.Body)
		}
	}
	for _, id := range ids {
		if n := p.countOpenLoans(t, id); n > limit {
			t.Errorf("a patron has %d books, allowed are %d", n, limit)
		}
	}
	p.checkLoansAndItemsAgree(t)
}

// checkHealth asks an instance for its health: it lives, and is as ready as that.
// It returns what readiness says.
func checkHealth(t *testing.T, base string, ready int) string {
	t.Helper()
	c := stack.Client{Base: base, HTTP: burstClient}
	if a := callEndpoint(t, c, http.MethodGet, "/admin/health", nil); a.Status != http.StatusOK {
		t.Errorf("%s says that it does not live: %d %s", base, a.Status, a.Body)
	}
	a := callEndpoint(t, c, http.MethodGet, "/admin/health/ready", nil)
	if a.Status != ready || len(a.Body) == 0 {
		t.Errorf("readiness of %s: %d %s, want %d", base, a.Status, a.Body, ready)
	}
	return string(a.Body)
}

// checkLoansAndItemsAgree fails the test when an item is checked out without an
// open loan, has one without being checked out, or has several.
func (p *pair) checkLoansAndItemsAgree(t *testing.T) {
	t.Helper()
	var loans struct{ Loans []struct{ ItemID string } }
	p.readInto(t, "/loan-storage/loans?limit=1000&query="+url.QueryEscape(`status.name=="Open"`), &loans)
	var items struct{ Items []struct{ ID string } }
	p.readInto(t, "/item-storage/items?limit=1000&query="+url.QueryEscape(`status.name=="Checked out"`), &items)
	var lent, out []string
	for _, l := range loans.Loans {
		lent = append(lent, l.ItemID)
	}
	for _, i := range items.Items {
		out = append(out, i.ID)
	}
	slices.Sort(lent)
	slices.Sort(out)
	if !slices.Equal(lent, out) {
		t.Errorf("open loans are of the items\n%q\nbut checked out are\n%q", lent, out)
	}
	if len(lent) == 0 {
		t.Error("nothing is lent: the test did not see what it is for")
	}
}
