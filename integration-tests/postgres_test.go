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

// machinesAtWork send check-outs of any book to any patron, one after the other,
// until they are told to stop.
type machinesAtWork struct {
	p               *pair
	wg              sync.WaitGroup
	stop            chan struct{}
	mu              sync.Mutex
	patrons, books  []string
	lent            []string // the loans that were acknowledged
	failed          int
	neverAnswerThus []string
}

func (m *machinesAtWork) work(t *testing.T, i int) {
	for {
		select {
		case <-m.stop:
			return
		default:
		}
		book, patron := m.next()
		a, err := m.p.machines[i%len(m.p.machines)].Do(t.Context(), http.MethodPost, "/circulation/check-out-by-barcode", m.p.checkOut(book, patron))
		m.note(a, err)
	}
}

func (m *machinesAtWork) next() (book, patron string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.books[rand.N(len(m.books))], m.patrons[rand.N(len(m.patrons))]
}

// serve gives the machines other patrons and books.
func (m *machinesAtWork) serve(patrons, books []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.patrons, m.books = patrons, books
}

func (m *machinesAtWork) note(a stack.Answer, err error) {
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
		m.neverAnswerThus = append(m.neverAnswerThus, fmt.Sprintf("%d %s %v", a.Status, a.Body, err))
	}
}

// until waits for n more lendings and failures.
func (m *machinesAtWork) until(t *testing.T, lent, failed int) {
	t.Helper()
	count := func() (int, int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.lent), m.failed
	}
	lentBefore, failedBefore := count()
	eventually(t, patience, fmt.Sprintf("%d lendings and %d failures more", lent, failed), func() bool {
		l, f := count()
		return l >= lentBefore+lent && f >= failedBefore+failed
	})
}

func TestWhenPostgreSQLDiesUnderLoadNothingThatWasLentIsLost(t *testing.T) {
	t.Parallel()
	const limit = 3
	pg := ownServer(t)
	p := start(t, stack.Options{DatabaseURL: pg.URL(), Storages: 2, Circulations: 2, CirculationEnv: on("LOCK_TTL_MS=500")}, limit)
	m := &machinesAtWork{p: p, stop: make(chan struct{})}
	ids := make([]string, 30)
	patrons, books := make([]string, len(ids)), p.books(t, 4*len(ids))
	for i := range ids {
		ids[i], patrons[i] = p.patron(t)
	}
	// Half of them come afterwards, when the others may have all that they are lent.
	m.serve(patrons[:15], books[:60])
	for i := range 6 {
		m.wg.Go(func() { m.work(t, i) })
	}
	end := sync.OnceFunc(func() {
		close(m.stop)
		m.wg.Wait()
	})
	t.Cleanup(end)

	m.until(t, 8, 0)
	if err := pg.Kill(); err != nil {
		t.Fatal(err)
	}
	m.until(t, 0, 12)
	everywhere := append(slices.Clone(p.Storages), p.Circulations...)
	for _, base := range everywhere {
		checkHealth(t, base, http.StatusServiceUnavailable)
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, base := range everywhere {
		eventually(t, patience, base+" ready again", func() bool {
			return do(t, stack.Client{Base: base, HTTP: quick}, http.MethodGet, "/admin/health/ready", nil).Status == http.StatusOK
		})
	}
	m.serve(patrons[15:], books[60:])
	m.until(t, 8, 0)
	end()

	if len(m.neverAnswerThus) > 0 {
		t.Errorf("machines were answered %q", m.neverAnswerThus)
	}
	for _, loan := range m.lent {
		if a := do(t, p.machines[0], http.MethodGet, "/circulation/loans/"+loan, nil); a.Status != http.StatusOK {
			t.Errorf("the loan %s was acknowledged, and now: %d %s", loan, a.Status, a.Body)
		}
	}
	for _, id := range ids {
		if n := p.open(t, id); n > limit {
			t.Errorf("a patron has %d books, allowed are %d", n, limit)
		}
	}
	p.checkLoansAndItemsAgree(t)
}

// checkHealth asks an instance for its health: it lives, and is as ready as that.
// It returns what readiness says.
func checkHealth(t *testing.T, base string, ready int) string {
	t.Helper()
	c := stack.Client{Base: base, HTTP: quick}
	if a := do(t, c, http.MethodGet, "/admin/health", nil); a.Status != http.StatusOK {
		t.Errorf("%s says that it does not live: %d %s", base, a.Status, a.Body)
	}
	a := do(t, c, http.MethodGet, "/admin/health/ready", nil)
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
	p.get(t, "/loan-storage/loans?limit=1000&query="+url.QueryEscape(`status.name=="Open"`), &loans)
	var items struct{ Items []struct{ ID string } }
	p.get(t, "/item-storage/items?limit=1000&query="+url.QueryEscape(`status.name=="Checked out"`), &items)
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
