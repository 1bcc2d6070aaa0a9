package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// A round of the race: enough at once for every interleaving to come up, and few
// enough that none of circulation's calls takes its 10 s on a slow machine.
const (
	racePatrons   = 3
	raceCheckOuts = 24
	raceLimit     = 3
	// raceTTL is long for a check-out, and short for those who wait: a lock that is
	// not given back in time costs its patron's others a part of their 25 s.
	raceTTL = 2 * time.Second
)

// pauses makes every fourth check-out pause between recount and commit, the first
// one to begin with.
type pauses struct {
	circulation.NoObserver
	reached *atomic.Int32
	pause   time.Duration
}

func (p pauses) Reached(ctx context.Context, step circulation.Step, _ time.Duration) {
	if step == circulation.Recounted && p.reached.Add(1)%4 == 1 {
		select {
		case <-time.After(p.pause):
		case <-ctx.Done():
		}
	}
}

// The races have the machine to themselves (no t.Parallel): on one that is busy
// with other tests, too, they would take long.

// race sends, in each round, all check-outs of some patrons at once to four
// circulation instances on two storages, and returns the patrons' open loans and
// what was answered.
func race(t *testing.T, rounds int, enabled bool, observe func(int) circulation.Observer) (p *pair, loans []int, all []stack.Outcome) {
	t.Helper()
	p = start(t, stack.Options{
		Storages: 2, Circulations: 4, Observe: observe,
		CirculationEnv: on(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled), fmt.Sprintf("LOCK_TTL_MS=%d", raceTTL.Milliseconds())),
	}, raceLimit)
	for range rounds {
		var checkOuts []stack.CheckOut
		ids := make([]string, racePatrons)
		for i := range ids {
			id, patron := p.patron(t)
			ids[i] = id
			for _, book := range p.books(t, raceCheckOuts) {
				checkOuts = append(checkOuts, p.checkOut(book, patron))
			}
		}
		rand.Shuffle(len(checkOuts), func(i, j int) { checkOuts[i], checkOuts[j] = checkOuts[j], checkOuts[i] })
		all = append(all, p.burst(t, checkOuts)...)
		for _, id := range ids {
			loans = append(loans, p.open(t, id))
		}
	}
	return p, loans, all
}

func TestTheLimitHoldsHoweverManyMachinesAskAtOnce(t *testing.T) {
	p, loans, all := race(t, 4, true, nil)
	for _, n := range loans {
		if n != raceLimit {
			t.Errorf("patrons have %v books, want %d each", loans, raceLimit)
			break
		}
	}
	p.noLocksLeft(t)
	sum := stack.Sum(all)
	t.Logf("longest wait %s, refused %v", sum.Longest, sum.Refused)
}

func TestTheLimitHoldsWhenHoldersPauseLongerThanTheirLockLives(t *testing.T) {
	reached := new(atomic.Int32)
	p, loans, all := race(t, 1, true, func(int) circulation.Observer {
		return pauses{reached: reached, pause: 2 * raceTTL}
	})
	for _, n := range loans {
		if n != raceLimit {
			t.Errorf("patrons have %v books, want %d each", loans, raceLimit)
			break
		}
	}
	p.noLocksLeft(t)
	fenced := metric(t, p, `checkout_commits_total{kind="check-out",outcome="lock_lost"}`)
	if fenced < 1 {
		t.Error("the fence refused nobody: the test did not see what it is for")
	}
	sum := stack.Sum(all)
	t.Logf("longest wait %s, refused %v, fenced %v", sum.Longest, sum.Refused, fenced)
}

func TestWithTheFeatureOffTheSameBurstExceedsTheLimit(t *testing.T) {
	_, loans, _ := race(t, 1, false, nil)
	most := 0
	for _, n := range loans {
		most = max(most, n)
	}
	if most <= raceLimit {
		t.Errorf("patrons have %v books: without the lock nothing went wrong, so the tests with it prove nothing", loans)
	}
}

// metric sums one series over the storages.
func metric(t testing.TB, p *pair, series string) float64 {
	t.Helper()
	sum := 0.0
	for _, base := range p.Storages {
		lines := bufio.NewScanner(strings.NewReader(p.metrics(t, base)))
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

// metrics is what an instance tells Prometheus.
func (p *pair) metrics(t testing.TB, base string) string {
	t.Helper()
	return string(do(t, stack.Client{Base: base, HTTP: quick}, http.MethodGet, "/metrics", nil).Body)
}
