package postgres_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// The schema makes a key that is missing from the path and its cuts.
func TestEnqueue_StoresCutsForBuildsWithoutKeys(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewClaimStore(db)
	c := engine.Claim{ID: uuid.New(), Instance: uuid.New(), Namespace: "ns", Resources: []engine.Resource{
		{}, {Path: []string{"branch"}, Write: true}, {Path: []string{"bücher", "x", "shelf-7"}}, {Path: []string{"x"}},
	}}
	if err := store.StartLease(t.Context(), c.Instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	readKeys := func() (keys [][]byte) {
		statement := `SELECT array_agg(key ORDER BY position) FROM {schema}.claim_resource WHERE namespace = 'ns'`
		if err := db.Pool().QueryRow(t.Context(), s.NameSchema(statement)).Scan(&keys); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	stored := readKeys()
	forget := `UPDATE {schema}.claim_resource SET key = NULL WHERE namespace = 'ns'`
	if _, err := db.Pool().Exec(t.Context(), s.NameSchema(forget)); err != nil {
		t.Fatal(err)
	}
	if made := readKeys(); len(stored) != len(c.Resources) || !reflect.DeepEqual(made, stored) {
		t.Errorf("got the keys %x, made from the cuts %x", stored, made)
	}
}
