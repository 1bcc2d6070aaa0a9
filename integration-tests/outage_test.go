package integration_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/stack"
)

// recoveryLimit is how long the first check-out after an outage may take. It leaves room for
// a slow machine: on two cores of 2026 it is well below a second.
const recoveryLimit = 10 * time.Second

func TestOutage_Recovery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// befall begins the outage and returns what ends it; nil for one that ends by
		// itself.
		befall func(t *testing.T, pg *devpostgres.Server, before *wire) (end func())
		failed int // how many check-outs fail at least before it ends
	}{
		{
			name: "all sessions are ended",
			befall: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
				administrate(t, pg.URL(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
				return nil
			},
		},
		{
			name: "a restart", failed: 6,
			befall: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
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
			befall: func(_ *testing.T, _ *devpostgres.Server, before *wire) func() {
				before.pause()
				return before.resume
			},
		},
		{
			name: "a database that is made read-only", failed: 6,
			befall: func(t *testing.T, pg *devpostgres.Server, _ *wire) func() {
				administrate(t, pg.URL(), `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
				return func() {
					administrate(t, pg.URL(), `SET default_transaction_read_only = off`, `ALTER SYSTEM RESET default_transaction_read_only`, `SELECT pg_reload_conf()`)
				}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pg := startPostgreSQL(t)
			p, before := startPairWithWire(t, stack.Options{DatabaseURL: pg.URL(), CirculationEnv: enableLock("LOCK_TTL_MS=1000")}, 1000)
			m, end := startWorkload(t, p, 4, 12, 400)
			m.waitForOutcomes(t, 8, 0)
			over := tt.befall(t, pg, before)
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
