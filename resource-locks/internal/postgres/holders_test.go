package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// TestHolders_KeepTheirLocksInABurst lets more callers wait for a frozen row than there are
// connections. Another process renews a lock that it has not granted.
func TestHolders_KeepTheirLocksInABurst(t *testing.T) {
	t.Parallel()
	for _, size := range []int32{2, 4, 20} {
		t.Run(fmt.Sprintf("%d connections", size), func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			granting := postgres.NewLockStore(s.Open(""))
			db := s.OpenAlone(size)
			store := postgres.NewLockStore(db)
			lock := func(store *postgres.LockStore, name, owner string) (engine.Result, error) {
				return store.Acquire(t.Context(), engine.Acquire{
					Key: engine.Key{Namespace: "ns", Name: name}, Owner: owner, TTL: time.Hour,
				})
			}
			names := []string{"known", "refreshed", "frozen"}
			for try := range soonTries {
				names = append(names, fmt.Sprint("unknown ", try), fmt.Sprint("released ", try))
			}
			for _, name := range names {
				by := granting
				if name == "known" {
					by = store
				}
				if _, err := lock(by, name, "ann"); err != nil {
					t.Fatal(err)
				}
			}
			key := func(name string) engine.Key { return engine.Key{Namespace: "ns", Name: name} }
			refreshed, err := granting.Fetch(t.Context(), key("refreshed"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := granting.Release(t.Context(), key("frozen"), "ann"); err != nil {
				t.Fatal(err)
			}
			thaw := freeze(t, db, `SELECT FROM `+s.Name+`.lock WHERE name = 'frozen' FOR UPDATE`)
			var burst sync.WaitGroup
			defer burst.Wait()
			defer thaw() // the burst would end after many time-outs
			for i := range 2 * size {
				burst.Go(func() { _, _ = lock(store, "frozen", fmt.Sprint("owner ", i)) })
			}
			waitFor(t, "a full pool", store.UnreservedAreBusy)
			for name, call := range map[string]func(try int) (any, bool, error){
				"a renewal": func(int) (any, bool, error) {
					g, err := lock(store, "known", "ann")
					return g, g.Outcome == engine.Renewed, err
				},
				"a renewal by another process": func(try int) (any, bool, error) {
					g, err := lock(store, fmt.Sprint("unknown ", try), "ann")
					return g, g.Outcome == engine.Renewed, err
				},
				"a lock that is kept": func(int) (any, bool, error) {
					g, err := store.Acquire(t.Context(), engine.Acquire{Key: key("known"), Owner: "ann", TTL: time.Hour, Keep: true})
					return g, g.Outcome == engine.Kept, err
				},
				"a refresh": func(int) (any, bool, error) {
					r, err := store.Refresh(t.Context(), engine.Refresh{
						Key: key("refreshed"), ID: refreshed.ID, Owner: "ann", TTL: time.Hour,
					})
					return r, r.Outcome == engine.Renewed, err
				},
				"a release": func(try int) (any, bool, error) {
					r, err := store.Release(t.Context(), key(fmt.Sprint("released ", try)), "ann")
					return r, r.Outcome == engine.Released, err
				},
				"a lease": func(int) (any, bool, error) {
					err := postgres.NewClaimStore(db).StartLease(t.Context(), uuid.New(), time.Hour)
					return nil, err == nil, err
				},
			} {
				wantSoon(t, name, func(try int) {
					if got, ok, err := call(try); err != nil || !ok {
						t.Errorf("%s got %+v, %v", name, got, err)
					}
				})
			}
			if !store.UnreservedAreBusy() {
				t.Error("the burst ended too early")
			}
		})
	}
}
