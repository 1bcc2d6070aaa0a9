package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/integration-tests/stack"
)

// The bursts run with the defaults of the line.
const (
	overloadLimit    = 3
	overloadAdmitted = 32              // the default of CHECKOUT_CONCURRENCY
	overloadWait     = 3 * time.Second // the default of CHECKOUT_QUEUE_WAIT
)

// The test is not parallel, because a burst has to be served within CHECKOUT_QUEUE_WAIT. On a
// machine that is too slow for the default, or busy with other work, it is longer.
func TestOverload_ServesABurst(t *testing.T) {
	for _, tt := range []struct {
		name          string
		circulations  int
		patrons, each int
		pool          int // of PgBouncer; 0 for direct connections
	}{
		{name: "480 at one instance", circulations: 1, patrons: 8, each: 60},
		{name: "1,800 at four instances", circulations: 4, patrons: 30, each: 60},
		{name: "1,800 at four instances through PgBouncer", circulations: 4, patrons: 30, each: 60, pool: 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := stack.Options{Circulations: tt.circulations}
			if tt.pool > 0 {
				direct := databaseURL(t)
				o.DatabaseURL, o.StorageEnv = startPgBouncer(t, direct, tt.pool), []string{"MIGRATE_DATABASE_URL=" + direct}
			}
			each := tt.each
			if raceDetector {
				each /= 6
			}
			for _, wait := range []time.Duration{overloadWait, overloadWait, 3 * overloadWait} {
				refused := runBurst(t, o, wait, tt.patrons, each)
				if refused == 0 || t.Failed() {
					return
				}
				t.Logf("%d were refused, because this host did not serve them within %s", refused, wait)
			}
			t.Skipf("this host is too slow, or too busy, for %d check-outs at once", tt.patrons*each)
		})
	}
}

// runBurst sends all check-outs of all patrons at once to circulations on two storages. It returns
// how many were refused because of overload. If none was, each patron has as many books as the
// limit allows. It fails the test if a check-out was refused although others waited for less than
// CHECKOUT_QUEUE_WAIT.
func runBurst(t *testing.T, o stack.Options, wait time.Duration, patrons, each int) (refused int) {
	t.Helper()
	var links []*connections
	o.Storages = 2
	o.CirculationEnv = []string{
		"CHECKOUT_LOCK_FEATURE_ENABLED=true", fmt.Sprintf("CHECKOUT_QUEUE_WAIT=%s", wait), "REQUEST_TIMEOUT=40s",
		"SHUTDOWN_TIMEOUT=60s",
	}
	o.Via = func(_ int, storage string) string {
		links = append(links, countConnections(t, storage))
		return "http://" + links[len(links)-1].address
	}
	p := startPair(t, o, overloadLimit)
	ids, barcodes := p.addPatrons(t, patrons)
	var all []stack.CheckOut
	for i, book := range p.addCopies(t, patrons*each) {
		all = append(all, p.newCheckOut(book, barcodes[i%patrons]))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	p.openConnections(t, all)
	refused, longest := countRefused(t, stack.SendBurst(t.Context(), p.machines, all))
	if refused > 0 && longest < wait*3/4 {
		t.Errorf("%d were refused, and the others were answered within %s, want none refused", refused, longest)
	}
	for i, link := range links {
		peak, made := link.readCounts()
		t.Logf("circulation %d: %d connections to storage at peak, %d in all", i+1, peak, made)
		if peak >= 2*overloadAdmitted {
			t.Errorf("circulation %d had %d connections to storage, want fewer than %d", i+1, peak, 2*overloadAdmitted)
		}
	}
	for _, id := range ids {
		if n := p.countOpenLoans(t, id); n > overloadLimit || n < overloadLimit && refused == 0 {
			t.Errorf("a patron has %d books, want %d", n, overloadLimit)
		}
	}
	p.checkNoLocks(t)
	p.checkLoansAndItemsAgree(t)
	return refused
}

// openConnections makes circulation and storage open as many connections as they use
// under load.
func (p *pair) openConnections(t *testing.T, all []stack.CheckOut) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range all[:min(len(all), len(p.machines)*overloadAdmitted)] {
		wg.Go(func() {
			machine := p.machines[i%len(p.machines)]
			if _, err := machine.Do(t.Context(), http.MethodPost, "/circulation/check-out-by-barcode-dry-run", c); err != nil {
				t.Errorf("a dry run got no answer: %v", err)
			}
		})
	}
	wg.Wait()
}

// countRefused returns how many were refused because of overload, and how long the longest other
// answer took. It fails the test for each answer that an overload must not cause.
func countRefused(t *testing.T, outcomes []stack.Outcome) (refused int, longest time.Duration) {
	t.Helper()
	count := map[string]int{} // by status and code
	for _, o := range outcomes {
		kind := strings.TrimSpace(fmt.Sprint(o.Status, " ", o.Code))
		switch {
		case o.Err != nil:
			kind = o.Err.Error()
			t.Errorf("a machine got no answer: %v", o.Err)
		case o.Status == http.StatusServiceUnavailable && o.Header.Get("X-Fault-Code") == "OVERLOADED" &&
			o.Header.Get("Retry-After") != "":
			kind = "503 OVERLOADED"
			refused++
			o.Took = 0
		case !o.Lent() && o.Status != http.StatusUnprocessableEntity && count[kind] == 0: // one of each kind
			t.Errorf("answered %d %s after %s", o.Status, o.Body, o.Took)
		}
		count[kind]++
		longest = max(longest, o.Took)
	}
	t.Logf("answers %v, the longest but refusals after %s", count, longest)
	return refused, longest
}

// addCopies adds n copies of one book with a single statement and returns their
// barcodes.
func (p *pair) addCopies(t *testing.T, n int) []string {
	t.Helper()
	first := p.addBooks(t, 1)[0]
	conn, err := pgx.Connect(t.Context(), databaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `
		INSERT INTO `+p.tableName("item")+` (id, jsonb)
		SELECT id, jsonb || jsonb_build_object('id', id, 'barcode', barcode)
		FROM (
			SELECT gen_random_uuid() AS id, jsonb, jsonb->>'barcode' || '-' || n AS barcode
			FROM `+p.tableName("item")+`, generate_series(1, $2) AS n
			WHERE jsonb->>'barcode' = $1
		) AS copy
		RETURNING jsonb->>'barcode'`, first, n)
	if err != nil {
		t.Fatal(err)
	}
	barcodes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(barcodes) != n {
		t.Fatalf("added %d copies, want %d: %v", len(barcodes), n, err)
	}
	return barcodes
}
