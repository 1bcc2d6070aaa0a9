package postgres_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// modes are the ways in which connections send statements, and a server with another isolation
// level than that of the tests' server. PgBouncer needs exec and READ COMMITTED.
var modes = map[string]string{
	"prepared":        "",
	"exec":            "&default_query_exec_mode=exec&default_transaction_isolation=read%20committed",
	"repeatable read": "&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read",
}

func TestLockStore(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			enginetest.RunLockStore(t, func(t *testing.T) (engine.LockStore, func(time.Duration)) {
				s := schematest.New(t)
				db := s.Open(parameters)
				return postgres.NewLockStore(db), func(d time.Duration) { s.Advance(db, d) }
			})
		})
	}
}

// A process that has not granted a lock has no hint that its caller renews it.
func TestAcquire_RenewsALockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).Open("")
	a := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "d"}, Owner: "ann", Kind: "k", Value: "v", TTL: time.Minute}
	granting := postgres.NewLockStore(db)
	if _, err := granting.Acquire(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want, err := granting.Ask(t.Context(), a.Key, engine.AskedFor{By: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	a.Kind, a.Value, a.TTL = "other", "new", time.Hour
	got, err := postgres.NewLockStore(db).Acquire(t.Context(), a)
	want.Kind, want.Value, want.RenewedAt = "other", "new", got.Lock.RenewedAt
	want.ExpiresAt = want.RenewedAt.Add(time.Hour)
	if err != nil || got.Outcome != engine.Renewed || !reflect.DeepEqual(got.Lock, want) ||
		!want.RenewedAt.After(want.GrantedAt) {
		t.Errorf("got %+v, %v, want it renewed: %+v", got, err, want)
	}
	refresh := engine.Refresh{Key: a.Key, ID: want.ID, Owner: "ann", TTL: time.Hour}
	got, err = granting.Refresh(t.Context(), refresh)
	if err != nil || !reflect.DeepEqual(got.Lock.Requests, want.Requests) {
		t.Errorf("refreshed %+v, %v, want the request of bob", got, err)
	}
}

// A sweep that waits for a row judges it as the transaction before it has left it.
func TestSweep_LeavesALockThatIsGrantedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"that has expired":      `expires_at = now() - interval '1 minute'`,
		"that ended lately":     `ended_at = now() - interval '1 minute'`,
		"that ended long since": `ended_at = now() - interval '2 hours'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			db := s.Open("")
			store := postgres.NewLockStore(db)
			a := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "d"}, Owner: "ann", TTL: time.Minute}
			if _, err := store.Acquire(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.ConnectConfig(t.Context(), db.Pool().Config().ConnConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			exec := func(statement string) {
				t.Helper()
				if _, err := conn.Exec(t.Context(), s.NameSchema(statement)); err != nil {
					t.Fatal(err)
				}
			}
			exec(`UPDATE {schema}.lock SET sweep_after = now(), ` + before)
			exec(`BEGIN`)
			exec(`UPDATE {schema}.lock
				SET ended_at = NULL, expires_at = now() + interval '1 hour', sweep_after = now() + interval '2 hours'`)
			ended := make(chan error, 1)
			go func() {
				expired, err := store.Sweep(t.Context(), time.Hour, 10)
				if len(expired) != 0 {
					t.Errorf("swept %+v", expired)
				}
				ended <- err
			}()
			waitFor(t, "a sweep that waits", func() (waits bool) {
				const blocked = `
					SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`
				if err := conn.QueryRow(t.Context(), blocked).Scan(&waits); err != nil {
					t.Fatal(err)
				}
				return waits
			})
			exec(`COMMIT`)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if l, err := store.Fetch(t.Context(), a.Key); err != nil {
				t.Errorf("the lock is %+v, %v", l, err)
			}
			var late bool
			due := s.NameSchema(`SELECT sweep_after > expires_at FROM {schema}.lock`)
			if err := conn.QueryRow(t.Context(), due).Scan(&late); err != nil || !late {
				t.Errorf("a sweep looks at the lock after its end: %t, %v", late, err)
			}
		})
	}
}

// TestLockStore_RandomSequences has a process of each mode.
func TestLockStore_RandomSequences(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	var stores []engine.LockStore
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		stores = append(stores, postgres.NewLockStore(s.Open(modes[mode])))
	}
	enginetest.RunRandomLocks(t, stores, func(d time.Duration) { s.Advance(db, d) })
}
