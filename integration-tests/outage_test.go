package integration_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"checkoutlock/devpostgres"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

// recoveryLimit is the longest time from the end of an outage to the next loan. It suits
// slow hosts: two cores of 2026 need much less than a second.
const recoveryLimit = 10 * time.Second

func TestOutage_Recovery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// begin begins the outage. It returns a function that ends it, nil if it ends by itself.
		begin  func(t *testing.T, pg *devpostgres.Server, before *wire) (end func())
		failed int // the outage ends after so many failures
	}{
		{
			name: "all sessions are ended",
			begin: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
				execSQL(t, pg.URL(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client `+
					`backend' AND pid <> pg_backend_pid()`)
				return nil
			},
		},
		{
			name: "a restart", failed: 6,
			begin: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
				if err := pg.Kill(); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := pg.Restart(t.Context()); err != nil {
						t.Error(err)
					}
				}
			},
		},
		{
			name: "a server that falls silent", failed: 1,
			begin: func(_ *testing.T, _ *devpostgres.Server, before *wire) func() {
				before.pause()
				return before.resume
			},
		},
		{
			name: "a database that is made read-only", failed: 6,
			begin: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
				execSQL(t, pg.URL(), `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
				return func() {
					execSQL(t, pg.URL(), `SET default_transaction_read_only = off`, `ALTER SYSTEM RESET default_transaction_read_only`,
						`SELECT pg_reload_conf()`)
				}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pg := testserver.Start(t, nil)
			p, before := startPairWithWire(t, stack.Options{
				DatabaseURL: pg.URL(), CirculationEnv: enableLock("LOCK_TTL_MS=1000"),
			}, 1000)
			_, patrons := p.addPatrons(t, 12)
			m, end := startWorkload(t, p, 4, patrons, p.addBooks(t, 400))
			m.waitForOutcomes(t, 8, 0)
			over := tt.begin(t, pg, before)
			m.waitForOutcomes(t, 0, tt.failed)
			if over != nil {
				over()
			}
			began := time.Now()
			m.waitForOutcomes(t, 1, 0)
			took := time.Since(began)
			t.Logf("the first check-out was lent after %s", took.Round(time.Millisecond))
			if took > recoveryLimit {
				t.Errorf("the first check-out was lent after %s, want at most %s", took, recoveryLimit)
			}
			m.waitForOutcomes(t, 8, 0)
			end()
			if len(m.badAnswers) > 0 {
				t.Errorf("machines were answered %q", m.badAnswers)
			}
			p.checkLoansAndItemsAgree(t)
		})
	}
}

func TestOutage_KeepsAcknowledgedLoans(t *testing.T) {
	t.Parallel()
	const limit = 3
	pg := testserver.Start(t, nil)
	p := startPair(t, stack.Options{
		DatabaseURL: pg.URL(), Storages: 2, Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=500"),
	}, limit)
	ids, patrons := p.addPatrons(t, 30)
	books := p.addBooks(t, 4*len(ids))
	// Half of the patrons borrow after the outage, because the others may be at their limit.
	m, end := startWorkload(t, p, 6, patrons[:15], books[:60])

	m.waitForOutcomes(t, 8, 0)
	if err := pg.Kill(); err != nil {
		t.Fatal(err)
	}
	m.waitForOutcomes(t, 0, 12)
	for _, base := range slices.Concat(p.Storages, p.Circulations) {
		checkHealth(t, base, http.StatusServiceUnavailable)
	}
	restart(t, pg, p)
	m.assign(patrons[15:], books[60:])
	m.waitForOutcomes(t, 8, 0)
	end()

	if len(m.badAnswers) > 0 {
		t.Errorf("machines were answered %q", m.badAnswers)
	}
	for _, loan := range m.lent {
		if a := callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/loans/"+loan, nil); a.Status != http.StatusOK {
			t.Errorf("the acknowledged loan %s: %d %s", loan, a.Status, a.Body)
		}
	}
	for _, id := range ids {
		if n := p.countOpenLoans(t, id); n > limit {
			t.Errorf("a patron has %d books, want at most %d", n, limit)
		}
	}
	p.checkLoansAndItemsAgree(t)
}
