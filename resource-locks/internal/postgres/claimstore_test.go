package postgres_test

import (
	"fmt"
	"maps"
	"slices"
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
