package postgres_test

import (
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
	open("idle", "opened", "b", "c", "d")
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
	wantKnown(true, "opened", "used", "held")
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
