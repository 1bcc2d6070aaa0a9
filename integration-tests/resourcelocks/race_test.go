package resourcelocks

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
)

const (
	racers = 32
	rounds = 5
)

func TestRaces_OneOwnerWins(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	instances := []addresses{startInstance(t, database), startInstance(t, database)}
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for range rounds {
				runRace(t, p, instances, "race-"+uuid.NewString())
			}
		})
	}
}

// runRace lets owners ask for a key at once. They leave when all have their answer.
func runRace(t *testing.T, p protocol, instances []addresses, key string) {
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
	close(start)
	racing.Wait()
	var winner *hold
	for i, h := range holds {
		switch {
		case h != nil && winner != nil:
			t.Errorf("%d also won", i)
		case h != nil:
			winner = h
		case !errors.Is(errs[i], errRefused):
			t.Errorf("owner %d got %v, want a refusal", i, errs[i])
		}
	}
	if winner == nil {
		t.Fatal("no owner won")
	}
	if err := winner.release(t.Context()); err != nil {
		t.Error(err)
	}
}
