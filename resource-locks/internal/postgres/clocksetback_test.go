package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

// A lock of the time before the clock was set back equals no lock.
func TestLockStore_AfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	key := engine.Key{Namespace: "ns", Name: "d"}
	ann := engine.Acquire{Key: key, Owner: "ann", TTL: time.Minute}
	bob := engine.Acquire{Key: key, Owner: "bob", TTL: time.Minute}
	acquire := func(a engine.Acquire, want engine.Outcome) engine.Result {
		t.Helper()
		g, err := store.Acquire(t.Context(), a)
		if err != nil || g.Outcome != want {
			t.Fatalf("%s gets %+v, %v, want %s", a.Owner, g, err, want)
		}
		return g
	}
	first := acquire(ann, engine.Granted)
	acquire(bob, engine.Held)
	s.Advance(db, -4*time.Second) // clocks of two servers may differ
	acquire(bob, engine.Held)
	s.Advance(db, -time.Hour)

	if all, err := store.List(t.Context(), engine.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("listed %+v, %v, want none", all, err)
	}
	if counts, err := store.Count(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("counted %+v, %v, want none", counts, err)
	}
	if l, err := store.Fetch(t.Context(), key); !fault.Is(err, fault.NotFound) {
		t.Errorf("fetched %+v, %v, want %s", l, err, fault.NotFound)
	}
	if l, err := store.Ask(t.Context(), key, engine.AskedFor{By: "bob"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("asked for %+v, %v, want %s", l, err, fault.NotFound)
	}
	note := engine.Note{By: "eve", Reason: "stuck"}
	if l, err := store.ForceRelease(t.Context(), key, first.Lock.ID, note); !fault.Is(err, fault.NotFound) {
		t.Errorf("released %+v by force, %v, want %s", l, err, fault.NotFound)
	}
	if r, err := store.Release(t.Context(), key, "ann"); err != nil || r.Outcome != engine.Free {
		t.Errorf("release: %s, %v, want %s", r.Outcome, err, engine.Free)
	}
	for name, send := range map[string]func() (map[int]engine.Lock, error){
		"renewals": func() (map[int]engine.Lock, error) {
			return store.SendRenewals(t.Context(), []engine.Acquire{ann, ann})
		},
		"refusals": func() (map[int]engine.Lock, error) {
			return store.SendRefusals(t.Context(), []engine.Acquire{bob, bob})
		},
	} {
		if got, err := send(); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v, want none", name, got, err)
		}
	}
	if g := acquire(bob, engine.Granted); !g.Expired || g.Lock.Fence <= first.Lock.Fence {
		t.Errorf("got %+v, want a later fence and the end of the first", g)
	}
	s.Advance(db, -time.Hour)
	refresh := engine.Refresh{Key: key, Owner: "bob", TTL: time.Minute}
	all, err := store.Sweep(t.Context(), time.Hour, 10)
	if err != nil || len(all) != 0 {
		t.Errorf("swept %+v, %v before it is due", all, err)
	}
	if err := db.Pool().QueryRow(t.Context(), s.NameSchema(
		`UPDATE {schema}.lock SET sweep_after = now() RETURNING id`)).Scan(&refresh.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := store.Sweep(t.Context(), time.Hour, 10); err != nil || len(all) != 1 {
		t.Errorf("swept %+v, %v, want the outdated lock", all, err)
	}
	s.Advance(db, 10*time.Minute) // the lock has ended with the sweep, not later
	refresh.ResumeWithin = 5 * time.Minute
	if r, err := store.Refresh(t.Context(), refresh); err != nil || r.Outcome != engine.UnknownID {
		t.Errorf("refreshed %+v, %v, want it too late", r, err)
	}
	refresh.ResumeWithin = time.Hour
	r, err := store.Refresh(t.Context(), refresh)
	if err != nil || r.Outcome != engine.Granted || r.Lock.ID == refresh.ID {
		t.Errorf("refreshed %+v, %v, want a new lock for the former holder", r, err)
	}
}

// What began before the clock was set back ends, a lease after its length and a held claim
// after its Abandon, both from now on. A lease that is kept goes on.
func TestClaimStore_AfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	open := func() *postgres.ClaimStore { return postgres.NewClaimStore(db) } // repairs at once
	store, live, dead, stopped := open(), uuid.New(), uuid.New(), uuid.New()
	for _, instance := range []uuid.UUID{live, dead, stopped} {
		if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	claims := map[string]engine.Claim{}
	for name, instance := range map[string]uuid.UUID{
		"dead": dead, "stopped": stopped, "disconnected": live, "kept": live,
	} {
		q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: name, Abandon: time.Minute}
		q.Resources = []engine.Resource{{Write: true}}
		if _, err := store.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		claims[name] = q
	}
	if err := store.EndLease(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Disconnect(t.Context(), live, "disconnected", claims["disconnected"].ID); err != nil {
		t.Fatal(err)
	}
	wantEnded := func(want ...string) {
		t.Helper()
		if err := open().KeepLease(t.Context(), live, time.Minute); err != nil {
			t.Fatal(err)
		}
		_, ended := settle(t, open(), live)
		got := map[string]bool{}
		for _, c := range ended {
			got[c.Namespace] = true
		}
		if len(got) != len(want) {
			t.Errorf("ended %v, want %v", got, want)
		}
		for _, name := range want {
			if !got[name] {
				t.Errorf("ended %v, want %v", got, want)
			}
		}
	}
	s.Advance(db, -time.Hour)
	wantEnded()
	s.Advance(db, 50*time.Second)
	wantEnded()
	s.Advance(db, 15*time.Second)
	wantEnded("stopped", "disconnected") // and the lease of the dead one
	s.Advance(db, 40*time.Second)
	wantEnded()
	s.Advance(db, 20*time.Second)
	wantEnded("dead")
}
