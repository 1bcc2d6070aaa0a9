package postgres_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

func TestClaimStore_ForgetsUnusedNamespaces(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, 100*time.Hour); err != nil {
		t.Fatal(err)
	}
	enqueue := func(namespace string, number int64) engine.Claim {
		t.Helper()
		q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: namespace}
		q.Resources = []engine.Resource{{Write: true}}
		if place, err := store.Enqueue(t.Context(), q); err != nil || place.Number != number {
			t.Fatalf("got %+v, %v, want number %d", place, err, number)
		}
		return q
	}
	open := func(namespaces ...string) {
		t.Helper()
		for _, name := range namespaces {
			if err := store.OpenNamespace(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantKnown := func(known bool, namespaces ...string) {
		t.Helper()
		for _, name := range namespaces {
			if _, err := store.Stats(t.Context(), name); (err == nil) != known || err != nil && !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, want known %t", name, err, known)
			}
		}
	}
	open("idle", "opened", "b", "c", "d", "noted")
	// A claim with this number must not be placed for one that went before.
	const note = `INSERT INTO {schema}.removed_claim (namespace, number) VALUES ('noted', 1)`
	if _, err := db.Pool().Exec(t.Context(), s.NameSchema(note)); err != nil {
		t.Fatal(err)
	}
	enqueue("held", 1)
	released := enqueue("released", 1)
	used := enqueue("used", 1)
	for _, q := range []engine.Claim{released, used} {
		if _, err := store.Withdraw(t.Context(), instance, q.Namespace, q.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.Advance(db, 20*time.Hour)
	open("opened")
	used = enqueue("used", 2)
	if _, err := store.Withdraw(t.Context(), instance, "used", used.ID); err != nil {
		t.Fatal(err)
	}
	s.Advance(db, 5*time.Hour)
	n, err := store.SweepNamespacesInPages(t.Context(), 24*time.Hour, 2)
	if err != nil || n != 5 {
		t.Errorf("forgot %d, %v, want 5", n, err)
	}
	wantKnown(false, "idle", "b", "c", "d", "released")
	wantKnown(true, "opened", "used", "held", "noted")
	enqueue("released", 1)
	enqueue("used", 3)
	enqueue("held", 2)
}

// A sweep beside clients never lets numbers begin anew while a claim is stored.
func TestClaimStore_SweepsNamespacesBesideClients(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	var clients, sweeper sync.WaitGroup
	done := make(chan struct{})
	sweeper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := store.SweepNamespaces(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		clients.Go(func() {
			for range 50 {
				first := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: "ns"}
				first.Resources = []engine.Resource{{}} // so that all are held
				place, err := store.Enqueue(t.Context(), first)
				if err != nil {
					t.Error(err)
					return
				}
				second := first
				second.ID = uuid.New()
				next, err := store.Enqueue(t.Context(), second)
				if err != nil || next.Number <= place.Number {
					t.Errorf("got %+v, %v after %+v", next, err, place)
				}
				for _, q := range []engine.Claim{first, second} {
					if _, err := store.Withdraw(t.Context(), instance, "ns", q.ID); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	clients.Wait()
	close(done)
	sweeper.Wait()
}

// TestClaimStore_FrozenNamespaceStopsNoOther has more calls for a frozen namespace than connections.
func TestClaimStore_FrozenNamespaceStopsNoOther(t *testing.T) {
	t.Parallel()
	const callers = 64
	s := schematest.New(t)
	db := s.OpenAlone(20)
	store, locks := postgres.NewClaimStore(db), postgres.NewLockStore(db)
	instance := uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, db, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, s.Name+"/frozen")
	enqueue := func(namespace string) error {
		q := engine.Claim{ID: uuid.New(), Namespace: namespace, Instance: instance, Resources: []engine.Resource{{}}}
		_, err := store.Enqueue(t.Context(), q)
		return err
	}
	ends := make(chan error, callers)
	for range callers {
		go func() { ends <- enqueue("frozen") }()
	}
	waitFor(t, "the calls for the frozen one", func() bool {
		return store.CallsIn("frozen") == callers || len(ends) > 0
	})
	for name, call := range map[string]func(namespace string) error{
		"a claim":      enqueue,
		"a connection": func(namespace string) error { return store.OpenNamespace(t.Context(), namespace) },
		"a lock": func(namespace string) error {
			_, err := locks.Acquire(t.Context(), engine.Acquire{
				Key: engine.Key{Namespace: namespace}, Owner: "ann", TTL: time.Hour,
			})
			return err
		},
	} {
		if err := call("other"); err != nil {
			t.Errorf("%s of another namespace: %v", name, err)
		}
	}
	if n := len(ends); n > callers/4 { // they end after 2 s each
		t.Errorf("the others waited for %d calls for the frozen one", n)
	}
	if err := <-ends; !fault.Is(err, fault.Timeout) {
		t.Errorf("a call for the frozen one: %v, want %q", err, fault.Timeout)
	}
	if all, err := store.ListClaims(t.Context(), "frozen", 10); err != nil || len(all) != 0 {
		t.Errorf("stored %+v, %v in the frozen one, want nothing", all, err)
	}
	thaw()
	for range callers - 1 {
		if err := <-ends; err != nil && !fault.Is(err, fault.Timeout) {
			t.Error(err)
		}
	}
	if n := store.CallsIn("frozen"); n != -1 {
		t.Errorf("the store still keeps the frozen one, with %d calls", n)
	}
}

// A claim that waits came before the end of the one that it waits for, and a claim that is held after it.
func TestClaimStore_EndsOvertakeNewClaims(t *testing.T) {
	t.Parallel()
	for i, end := range []string{"Withdraw", "Disconnect", "ForceWithdraw"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			const callers = 60 // on a slow host some pass while PostgreSQL plans the end
			s := schematest.New(t)
			db := s.OpenAlone(20)
			store := postgres.NewClaimStore(db)
			held := engine.Claim{ID: uuid.New(), Instance: uuid.New(), Namespace: "ns", Resources: []engine.Resource{{}}}
			if err := store.StartLease(t.Context(), held.Instance, time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Enqueue(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			// The end must not wait for a new connection, while the claims have theirs.
			var connecting sync.WaitGroup
			for i := range 8 {
				connecting.Go(func() {
					if _, err := store.Withdraw(t.Context(), held.Instance, fmt.Sprint("other ", i), uuid.New()); err != nil {
						t.Error(err)
					}
				})
			}
			connecting.Wait()
			thaw := freeze(t, db, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, s.Name+"/"+held.Namespace)
			waits := make(chan bool, callers)
			for i := range callers {
				q := held
				q.ID, q.Resources = uuid.New(), []engine.Resource{{Path: []string{"a", strconv.Itoa(i)}, Write: true}}
				go func() {
					place, err := store.Enqueue(t.Context(), q)
					if err != nil {
						t.Error(err)
					}
					waits <- !place.Held
				}()
			}
			waitFor(t, "the new claims", func() bool { return store.CallsIn(held.Namespace) == callers })
			ended := make(chan error, 1)
			go func() { ended <- removals(t, held)[i].call(store) }()
			waitFor(t, "the end", func() bool { return store.CallsIn(held.Namespace) == callers+1 })
			thaw()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			before := 0
			for range callers {
				if <-waits {
					before++
				}
			}
			if before > callers/2 {
				t.Errorf("it went behind %d of %d new claims", before, callers)
			}
		})
	}
}
