package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// The size of the limit race. It is large enough for every interleaving to occur.
const (
	racePatrons   = 20
	raceCheckOuts = 24
	raceLimit     = 3
	raceTTL       = 300 * time.Millisecond
)

// pauseHolders pauses a share of all check-outs between grant and commit.
func pauseHolders(ctx context.Context, _ int, step circulation.Step) {
	if step == circulation.Locked && rand.N(100) < 15 {
		select {
		case <-time.After(2 * raceTTL):
		case <-ctx.Done():
		}
	}
}

// runRace sends all check-outs of all patrons at once to four circulation instances
// on two storages. The first of them, acquiring, acquire each lock before the commit, as an earlier
// build and FOLIO's do. It returns the patrons' open loans and a summary of the answers.
//
// The races are not parallel: on a machine busy with other tests, most holders outlive a
// TTL this short.
func runRace(
	t *testing.T, enabled bool, acquiring int, onStep func(context.Context, int, circulation.Step),
) (p *pair, loans []int, sum stack.Summary) {
	t.Helper()
	environ := enableLock(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled),
		fmt.Sprintf("LOCK_TTL_MS=%d", raceTTL.Milliseconds()),
		"CHECKOUT_CONCURRENCY=8", // as on a slow host, so that commits keep their time-out
		"CHECKOUT_QUEUE_WAIT=10s", "REQUEST_TIMEOUT=40s", "SHUTDOWN_TIMEOUT=60s")
	p, links := startPairWithLinks(t, stack.Options{
		Storages: 2, Circulations: 4, OnStep: onStep, CirculationEnv: environ,
	}, raceLimit)
	for _, l := range links[:acquiring] {
		l.acquires = true
	}
	var all []stack.CheckOut
	ids := make([]string, racePatrons)
	for i := range ids {
		id, patron := p.addPatron(t)
		ids[i] = id
		for _, book := range p.addBooks(t, raceCheckOuts) {
			all = append(all, p.newCheckOut(book, patron))
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	outcomes := stack.SendBurst(t.Context(), p.machines, all)
	for _, o := range outcomes {
		if o.Err != nil || o.Status >= http.StatusInternalServerError && o.Header.Get("X-Fault-Code") != "OVERLOADED" {
			t.Errorf("a check-out failed: %d %s %v", o.Status, o.Body, o.Err)
		}
	}
	for _, id := range ids {
		loans = append(loans, p.countOpenLoans(t, id))
	}
	return p, loans, stack.Summarize(outcomes)
}

// checkRaceLimit fails the test unless each patron has as many loans as the limit allows.
func checkRaceLimit(t *testing.T, loans []int) {
	t.Helper()
	if slices.ContainsFunc(loans, func(n int) bool { return n != raceLimit }) {
		t.Errorf("patrons have %v books, want %d each", loans, raceLimit)
	}
}

func TestLimit_HoldsForManyMachines(t *testing.T) {
	for name, acquiring := range map[string]int{"commits take the lock": 0, "both ways": 2, "locks are acquired": 4} {
		t.Run(name, func(t *testing.T) {
			p, loans, sum := runRace(t, true, acquiring, nil)
			checkRaceLimit(t, loans)
			p.checkNoLocks(t)
			t.Logf("longest wait %s, refused %v", sum.Longest, sum.Refused)
		})
	}
}

func TestLimit_HoldsForPausedHolders(t *testing.T) {
	p, loans, sum := runRace(t, true, 4, pauseHolders)
	checkRaceLimit(t, loans)
	p.checkNoLocks(t)
	fenced := sumMetric(t, p, `checkout_commits_total{kind="check-out",outcome="lock_lost"}`)
	if fenced < 1 {
		t.Error("the fence refused no commit, want at least one")
	}
	t.Logf("longest wait %s, refused %v, fenced %v", sum.Longest, sum.Refused, fenced)
}

// The race is the one of the other tests. A machine may run a check-out after the other once, but not
// each time.
func TestLimit_IsExceededWithoutTheLock(t *testing.T) {
	for range 3 {
		_, loans, _ := runRace(t, false, 0, nil)
		if slices.Max(loans) > raceLimit {
			return
		}
		t.Logf("patrons have %v books", loans)
	}
	t.Error("three races did not exceed the limit without the lock, so they prove nothing")
}

// sumMetric adds up one series over all storages.
func sumMetric(t testing.TB, p *pair, series string) float64 {
	t.Helper()
	sum := 0.0
	for _, base := range p.Storages {
		lines := bufio.NewScanner(strings.NewReader(p.readMetrics(t, base)))
		for lines.Scan() {
			if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
		}
	}
	return sum
}

// readMetrics returns an instance's metrics as Prometheus reads them.
func (p *pair) readMetrics(t testing.TB, base string) string {
	t.Helper()
	return string(callEndpoint(t, newClient(base, ""), http.MethodGet, "/metrics", nil).Body)
}
