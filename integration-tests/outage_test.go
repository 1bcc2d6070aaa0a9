package integration_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/stack"
)

// recoveryLimit is how long the first check-out after an outage may take. It leaves room for
// a slow machine: on two cores of 2026 it is well below a second.
const recoveryLimit = 10 * time.Second

// startPostgreSQL starts a PostgreSQL for a test that ends, changes or cuts it off.
func startPostgreSQL(t *testing.T) *devpostgres.Server {
	t.Helper()
	pg, err := devpostgres.Start(t.Context(), devpostgres.Options{BinDir: os.Getenv("PG_BIN")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// administrate runs statements as the superuser.
func administrate(t *testing.T, databaseURL string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// startWorkload lets n machines lend the books of new patrons until the test ends or the
// returned function is called.
func startWorkload(t *testing.T, p *pair, n, patrons, books int) (m *workload, end func()) {
	t.Helper()
	m = &workload{p: p, stop: make(chan struct{})}
	barcodes := make([]string, patrons)
	for i := range barcodes {
		_, barcodes[i] = p.addPatron(t)
	}
	m.assign(barcodes, p.addBooks(t, books))
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
