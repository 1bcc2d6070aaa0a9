package resourcelocks

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	racers = 32
	rounds = 5 // of each front
)

func TestRaces_OneOwnerWins(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	instances := []addresses{startInstance(t, database), startInstance(t, database)}
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			judged := 0
			waitUntil(t, fmt.Sprintf("%d rounds within the time to live", rounds), func() bool {
				if runRace(t, p, instances, "race-"+uuid.NewString()) {
					judged++
				}
				return judged == rounds
			})
		})
	}
}

// runRace lets owners ask for a key at once. They leave when all have their answer. It reports
// whether it could judge them: on a slow host, a second may win because the time of the first
// is over, or an answer may be that no answer came in time.
func runRace(t *testing.T, p protocol, instances []addresses, key string) bool {
	t.Helper()
	holds, errs := make([]*hold, racers), make([]error, racers)
	start := make(chan struct{})
	var racing sync.WaitGroup
	for i := range racers {
		racing.Go(func() {
			<-start
			holds[i], errs[i] = p.acquire(t.Context(), instances[i%len(instances)], key, fmt.Sprintf("owner-%d", i))
		})
	}
	began := time.Now()
	close(start)
	racing.Wait()
	took := time.Since(began)
	for _, h := range holds {
		if h != nil {
			defer h.leave()
		}
	}
	if took >= lockTTL {
		return false
	}
	var winner *hold
	judged := true
	for i, h := range holds {
		switch {
		case h != nil && winner != nil:
			t.Errorf("%d also won", i)
		case h != nil:
			winner = h
		case errors.Is(errs[i], errAway):
			judged = false
		case !errors.Is(errs[i], errRefused):
			t.Errorf("owner %d got %v, want a refusal", i, errs[i])
		}
	}
	if !judged {
		return false
	}
	if winner == nil {
		t.Fatal("no owner won")
	}
	if err := winner.release(t.Context()); err != nil {
		t.Logf("a round is not judged, because the release failed: %v", err)
		return false
	}
	return true
}
