package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// A lease that is kept for longer than it began with is none of the time before the clock was set back.
func TestKeepLease_ChangesTheLength(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := store.KeepLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	settle(t, store, instance)
	s.Advance(db, 50*time.Minute)
	if err := store.KeepLease(t.Context(), instance, time.Hour); err != nil {
		t.Error(err)
	}
}

// Each start of a process leaves a row, which nothing needs a day after the lease and the last claim.
func TestStartLease_ForgetsOldInstances(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewClaimStore(db)
	start := func() uuid.UUID {
		t.Helper()
		id := uuid.New()
		if err := store.StartLease(t.Context(), id, time.Hour); err != nil {
			t.Fatal(err)
		}
		return id
	}
	old, holding, open := start(), start(), start()
	q := engine.Claim{
		ID: uuid.New(), Namespace: "ns", Instance: holding, Abandon: 100 * time.Hour, Resources: []engine.Resource{{}},
	}
	if _, err := store.Enqueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	end := func(ids ...uuid.UUID) {
		t.Helper()
		for _, id := range ids {
			if err := store.EndLease(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	end(old, holding)
	s.Advance(db, 25*time.Hour)
	late := start()
	end(late)
	want := []uuid.UUID{holding, open, late, start()}
	rows, _ := db.Pool().Query(t.Context(), s.NameSchema(`SELECT id FROM {schema}.instance`))
	got, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	compare := func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(got, compare)
	slices.SortFunc(want, compare)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the instances are %v, %v, want %v", got, err, want)
	}
}
