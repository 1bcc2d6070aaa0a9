package postgres_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

func TestClaimStore(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			enginetest.RunClaimStore(t, func(t *testing.T) (engine.ClaimStore, engine.LockStore, func(time.Duration)) {
				s := schematest.New(t)
				db := s.Open(parameters)
				return postgres.NewClaimStore(db), postgres.NewLockStore(db), func(d time.Duration) { s.Advance(db, d) }
			})
		})
	}
}

// TestClaimStore_InSteps runs the contract with transactions that move one claim each.
func TestClaimStore_InSteps(t *testing.T) {
	t.Parallel()
	enginetest.RunClaimStore(t, func(t *testing.T) (engine.ClaimStore, engine.LockStore, func(time.Duration)) {
		s := schematest.New(t)
		db := s.Open("")
		return postgres.NewClaimStoreInSteps(db), postgres.NewLockStore(db), func(d time.Duration) { s.Advance(db, d) }
	})
}

// TestClaimStore_RandomSequences has a process of each mode.
func TestClaimStore_RandomSequences(t *testing.T) {
	t.Parallel()
	for name, newStore := range map[string]func(*postgres.DB) engine.ClaimStore{
		"at once":  func(db *postgres.DB) engine.ClaimStore { return postgres.NewClaimStore(db) },
		"in steps": postgres.NewClaimStoreInSteps,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			db := s.Open("")
			var stores []engine.ClaimStore
			for _, mode := range slices.Sorted(maps.Keys(modes)) {
				stores = append(stores, newStore(s.Open(modes[mode])))
			}
			enginetest.RunRandomClaims(t, stores, func(d time.Duration) { s.Advance(db, d) })
		})
	}
}

// recordCommits notes for each changed claim, when its transaction commits, whether the
// commit waits for the disk.
const recordCommits = `
CREATE TABLE %[1]s.committed (at serial, held boolean, synchronous text);
CREATE FUNCTION %[1]s.record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO %[1]s.committed (held, synchronous) VALUES (NEW.held_at IS NOT NULL,
    current_setting('synchronous_commit'));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER record AFTER INSERT OR UPDATE ON %[1]s.claim DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION %[1]s.record()`

func TestClaimStore_GrantsAreDurable(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("&synchronous_commit=on")
	if _, err := db.Pool().Exec(t.Context(), fmt.Sprintf(recordCommits, s.Name),
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	claims := make([]engine.Claim, 3)
	for i := range claims {
		claims[i] = engine.Claim{
			ID: uuid.New(), Namespace: "ns", Instance: instance, Resources: []engine.Resource{{Write: true}},
		}
		if _, err := store.Enqueue(t.Context(), claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range claims[:2] {
		if granted, err := store.Withdraw(t.Context(), instance, "ns", c.ID); err != nil || len(granted) != 1 {
			t.Fatalf("granted %v, %v, want the next", granted, err)
		}
	}
	rows, err := db.Pool().Query(t.Context(),
		`SELECT concat_ws(' ', CASE WHEN held THEN 'held' ELSE 'waits' END, synchronous) FROM `+s.Name+
			`.committed ORDER BY at`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"held on", "waits off", "waits off", "held on", "held on"}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// A list shows a part of what a large claim has, and reads no more. The claims of the first lengths
// have a first path that is shown up to its end.
func TestClaimStore_ListsTheResourcesThatAreShown(t *testing.T) {
	t.Parallel()
	var long, short []engine.Resource
	for i := range 15 {
		long = append(long, engine.Resource{Path: []string{strings.Repeat(string(rune('a'+i)), engine.MaxPathBytes-1)}})
	}
	for i := range engine.MaxResources {
		short = append(short, engine.Resource{Path: []string{strconv.Itoa(i), ""}[:1+i%2], Write: i%3 == 0})
	}
	asked := map[string][]engine.Resource{"long paths": long, "short paths": short, "the root": {{Write: true}, {}}}
	for length := engine.MaxFormat - 10; length < engine.MaxFormat; length++ {
		for i, last := range short[:4] { // of all lengths and modes
			first := engine.Resource{Path: []string{strings.Repeat("x", length)}, Write: last.Write}
			asked[fmt.Sprintf("%d bytes and %d", length, i)] = []engine.Resource{first, last}
		}
	}
	s := schematest.New(t)
	store, instance := postgres.NewClaimStore(s.Open("")), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	for namespace, resources := range asked {
		c := engine.Claim{ID: uuid.New(), Namespace: namespace, Instance: instance, Resources: resources}
		if _, err := store.Enqueue(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := store.ListClaims(t.Context(), "", 2*len(asked))
	if err != nil || len(listed) != len(asked) {
		t.Fatalf("listed %d claims, %v, want %d", len(listed), err, len(asked))
	}
	for _, c := range listed {
		got, want := engine.FormatResources(c.Resources), engine.FormatResources(asked[c.Namespace])
		if got != want {
			t.Errorf("%s: shows %q, want %q", c.Namespace, got, want)
		}
		size := 0
		for _, r := range c.Resources {
			size += len(strings.Join(r.Path, "/"))
		}
		if size > engine.MaxFormat+engine.MaxPathBytes {
			t.Errorf("%s: %d bytes of paths were read", c.Namespace, size)
		}
	}
}

// TestListClaims_EndsOfDeadProcesses has a process that was killed, and one that lives.
func TestListClaims_EndsOfDeadProcesses(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewClaimStore(db)
	for _, lease := range []time.Duration{time.Minute, time.Hour} {
		q := engine.Claim{
			ID: uuid.New(), Namespace: "ns", Instance: uuid.New(), Abandon: time.Hour, Resources: []engine.Resource{{}},
		}
		if err := store.StartLease(t.Context(), q.Instance, lease); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	s.Advance(db, 2*time.Minute)
	for _, settled := range []bool{false, true} {
		claims, err := store.ListClaims(t.Context(), "ns", 10)
		if err != nil || len(claims) != 2 {
			t.Fatalf("got %+v, %v", claims, err)
		}
		end := claims[0].HeldAt.Add(time.Minute + time.Hour)
		if d := claims[0].EndsAt.Sub(end).Abs(); d > time.Minute || !claims[1].EndsAt.IsZero() {
			t.Errorf("settled %t: the ends are %v, want %v and none", settled, claims, end)
		}
		settle(t, store, uuid.Nil)
	}
}
