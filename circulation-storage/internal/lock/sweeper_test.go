package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/okapi"
)

// dusty is a store with old locks of some tenants; a negative number fails.
type dusty struct {
	lock.Store
	mu     sync.Mutex
	tidied map[string]int
	calls  int
	ids    []okapi.Tenant
	broken error
}

func (d *dusty) Tenants(context.Context) ([]okapi.Tenant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids, d.broken
}

func (d *dusty) Sweep(ctx context.Context, grace time.Duration, limit int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if grace != 10*time.Minute {
		return 0, errors.New("wrong grace")
	}
	d.calls++
	id, _ := okapi.TenantFrom(ctx)
	left := d.tidied[id.String()]
	if left < 0 {
		return 0, errors.New("boom")
	}
	n := min(left, limit)
	d.tidied[id.String()] -= n
	return n, nil
}

func TestSweeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &dusty{
			tidied: map[string]int{"a": 1, "broken": -1, "z": 1200},
			ids:    []okapi.Tenant{mustTenant(t, "a"), mustTenant(t, "broken"), mustTenant(t, "z")},
			broken: errors.New("database is away"),
		}
		seen := &counts{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			lock.NewSweeper(store, store, time.Minute, seen, slog.New(slog.NewTextHandler(t.Output(), nil))).Run(ctx)
		}()
		<-time.After(time.Minute) // the first turn, during an outage
		synctest.Wait()
		store.mu.Lock()
		store.broken = nil
		store.mu.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		if store.tidied["a"] != 0 || store.tidied["z"] != 0 {
			t.Errorf("left after a turn: %v", store.tidied)
		}
		if want := 1 + 1 + 3; store.calls != want {
			t.Errorf("%d sweeps, want %d: one each, and z in three batches", store.calls, want)
		}
		if seen.swept != 1201 || seen.sweeps != 2 {
			t.Errorf("observed %d locks in %d sweeps, want 1201 in 2", seen.swept, seen.sweeps)
		}
		stop()
		<-ended
	})
}

func TestSweepersDoNotStartTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const instances = 20
		starts := make(chan time.Duration, instances)
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		for range instances {
			s := lock.NewSweeper(nil, starter(func() { starts <- time.Since(begin) }), time.Minute, nil, slog.New(slog.DiscardHandler))
			go s.Run(ctx)
		}
		<-time.After(time.Minute - 1)
		stop()
		seen := map[time.Duration]bool{}
		for range instances {
			seen[<-starts] = true
		}
		if len(seen) < instances/2 {
			t.Errorf("%d instances started at %d different times", instances, len(seen))
		}
	})
}

// starter has no tenants and tells when it is asked for them.
type starter func()

func (s starter) Tenants(context.Context) ([]okapi.Tenant, error) {
	s()
	return nil, nil
}
