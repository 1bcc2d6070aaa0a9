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

// The size of the overload: far more check-outs than two cores process while a machine
// waits.
const (
	overloadPatrons  = 30
	overloadEach     = 60 // check-outs per patron
	overloadLimit    = 3
	overloadAdmitted = 32 // the default of CHECKOUT_CONCURRENCY
	overloadRefusal  = 15 * time.Second
)

// The test is not parallel, because it measures how long refusals take. It measures up to
// three times, because other processes may slow a refusal once, but not each time.
func TestOverload(t *testing.T) {
	t.Run("with direct connections to PostgreSQL", func(t *testing.T) {
		checkOverload(t, stack.Options{})
	})
	t.Run("through PgBouncer in transaction mode", func(t *testing.T) {
		direct := databaseURL(t)
		checkOverload(t, stack.Options{
			DatabaseURL: startPgBouncer(t, direct, 5), StorageEnv: []string{"MIGRATE_DATABASE_URL=" + direct},
		})
	})
}

// checkOverload fails the test if the refusals of three overloads take too long.
func checkOverload(t *testing.T, o stack.Options) {
	t.Helper()
	for range 3 {
		longest := runOverload(t, o)
		if longest <= overloadRefusal || t.Failed() {
			return
		}
		t.Logf("a refusal took %s", longest)
	}
	t.Errorf("refusals take more than %s, measured three times", overloadRefusal)
}

// runOverload sends all check-outs of all patrons at once to four circulation
// instances on two storages. It returns the time of the slowest refusal.
func runOverload(t *testing.T, o stack.Options) (longestRefusal time.Duration) {
	t.Helper()
	var links []*connections
	o.Storages, o.Circulations = 2, 4
	o.CirculationEnv = []string{"CHECKOUT_LOCK_FEATURE_ENABLED=true"}
	o.Via = func(_ int, storage string) string {
		links = append(links, countConnections(t, storage))
		return "http://" + links[len(links)-1].address
	}
	p := startPair(t, o, overloadLimit)
	patrons := map[string]string{} // ids by barcode
	var all []stack.CheckOut
	books := p.addCopies(t, overloadPatrons*overloadEach)
	for i := range overloadPatrons {
		id, barcode := p.addPatron(t)
		patrons[barcode] = id
		for _, book := range books[i*overloadEach:][:overloadEach] {
			all = append(all, p.newCheckOut(book, barcode))
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	p.openConnections(t, all)
	r := judgeAnswers(t, all, stack.SendBurst(t.Context(), p.machines, all))
	for i, link := range links {
		peak, made := link.readCounts()
		t.Logf("circulation %d: %d connections to storage at peak, %d in all", i+1, peak, made)
		if peak >= 2*overloadAdmitted {
			t.Errorf("circulation %d had %d connections to storage, want fewer than %d", i+1, peak, 2*overloadAdmitted)
		}
	}
	if r.count["503 OVERLOADED"] == 0 {
		t.Error("no check-out was refused with OVERLOADED, want some")
	}
	p.retryTurnedAway(t, patrons, r.turnedAway)
	p.checkNoLocks(t)
	p.checkLoansAndItemsAgree(t)
	return r.longestRefusal
}

// openConnections makes circulation and storage open as many connections as they use
// under load.
func (p *pair) openConnections(t *testing.T, all []stack.CheckOut) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range all[:len(p.machines)*overloadAdmitted] {
		wg.Go(func() {
			machine := p.machines[i%len(p.machines)]
			if _, err := machine.Do(t.Context(), http.MethodPost, "/circulation/check-out-by-barcode-dry-run", c); err != nil {
				t.Errorf("a dry run got no answer: %v", err)
			}
		})
	}
	wg.Wait()
}

// verdicts are the answers to a burst.
type verdicts struct {
	count      map[string]int              // by status and code
	turnedAway map[string][]stack.CheckOut // by the patron's barcode

	longestRefusal time.Duration
}

// judgeAnswers fails the test for each answer that an overload must not cause.
func judgeAnswers(t *testing.T, sent []stack.CheckOut, outcomes []stack.Outcome) verdicts {
	t.Helper()
	v := verdicts{count: map[string]int{}, turnedAway: map[string][]stack.CheckOut{}}
	var longest time.Duration
	for i, o := range outcomes {
		longest = max(longest, o.Took)
		kind := strings.TrimSpace(fmt.Sprint(o.Status, " ", o.Code))
		switch {
		case o.Err != nil:
			kind = o.Err.Error()
			t.Errorf("a machine got no answer: %v", o.Err)
		case o.Lent():
		case o.Status == http.StatusServiceUnavailable && o.Header.Get("X-Fault-Code") == "OVERLOADED" && o.Header.Get("Retry-After") != "":
			kind = "503 OVERLOADED"
			v.turnedAway[sent[i].UserBarcode] = append(v.turnedAway[sent[i].UserBarcode], sent[i])
		case o.Status != http.StatusUnprocessableEntity && v.count[kind] == 0: // one of each kind
			t.Errorf("answered %d %s after %s", o.Status, o.Body, o.Took)
		}
		v.count[kind]++
		if !o.Lent() {
			v.longestRefusal = max(v.longestRefusal, o.Took)
		}
	}
	t.Logf("answers %v, the longest after %s", v.count, longest)
	return v
}

// retryTurnedAway sends refused check-outs again until each patron has reached the limit.
// How many loans the first burst makes depends on the machine's speed.
func (p *pair) retryTurnedAway(t *testing.T, patrons map[string]string, turnedAway map[string][]stack.CheckOut) {
	t.Helper()
	for round := 1; ; round++ {
		var again []stack.CheckOut
		for barcode, id := range patrons {
			missing := overloadLimit - p.countOpenLoans(t, id)
			rest := turnedAway[barcode]
			if missing < 0 || missing > len(rest) {
				t.Fatalf("a patron has %d loans and %d refused check-outs, want %d loans", overloadLimit-missing, len(rest), overloadLimit)
			}
			again, turnedAway[barcode] = append(again, rest[:missing]...), rest[missing:]
		}
		if len(again) == 0 {
			return
		}
		t.Logf("round %d: %d check-outs are sent again", round, len(again))
		judgeAnswers(t, again, stack.SendBurst(t.Context(), p.machines, again))
	}
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
