package resourcelocks

import (
	"slices"
	"testing"
	"time"
)

// wakeLimit is for the median of the times from a release on one instance to the grant on
// another. Without the wake, a comparison finds the grant within a second.
const wakeLimit = 250 * time.Millisecond

func TestWaiters_WakeAcrossInstances(t *testing.T) {
	// The test is not parallel, because it measures times.
	database := createDatabase(t)
	a, b := startInstance(t, database), startInstance(t, database)
	var took []time.Duration
	for range 20 {
		holder, err := tryLocktopus(t.Context(), a, "wake", "")
		if err != nil {
			t.Fatal(err)
		}
		waiter, err := connectLocktopus(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := waiter.send(t.Context(), lockMessage("wake")); err != nil || m.State != "enqueued" {
			t.Fatalf("got %+v, %v, want a place in line", m, err)
		}
		released := time.Now()
		if err := holder.release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, err := waiter.receive(t.Context()); err != nil || m.State != "acquired" {
			t.Fatalf("got %+v, %v, want the grant", m, err)
		}
		took = append(took, time.Since(released))
		if m, err := waiter.send(t.Context(), releaseMessage); err != nil || m.State != "ready" {
			t.Fatalf("got %+v, %v, want the end of the lock", m, err)
		}
		waiter.leave()
	}
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("a waiter of another instance had its grant after %s, at most %s", median, took[len(took)-1])
	if median > wakeLimit {
		t.Errorf("the median is %s, want at most %s", median, wakeLimit)
	}
}
