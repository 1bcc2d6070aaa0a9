package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// Claims of two builds exclude each other only if both make the same keys.
func TestEnqueue_StoresTheKeysThatTheSchemaDescribes(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewClaimStore(db)
	c := engine.Claim{ID: uuid.New(), Instance: uuid.New(), Namespace: "ns", Resources: []engine.Resource{
		{},
		{Path: []string{"branch"}, Write: true},
		{Path: []string{"bücher", "x", "shelf-7"}},
		{Path: []string{"x"}},
		{Path: []string{"branch"}, Write: true},
		{Path: []string{"x"}}, // clients send some again
	}}
	if err := store.StartLease(t.Context(), c.Instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{ // for each segment a zero byte and 15 bytes of its SHA-256
		"",
		"00f38c764c8aa00b6578f4254a4dc6d9",
		"00958ec9bf5354447c690990f6d5e734" + "002d711642b726b04401627ca9fbac32" + "009219d37a12f17ada894d1f6e210023",
		"002d711642b726b04401627ca9fbac32",
	}
	statement := `
		SELECT array_agg(encode(key, 'hex') ORDER BY position) FROM {schema}.claim_resource WHERE namespace = 'ns'`
	var stored []string
	if err := db.Pool().QueryRow(t.Context(), s.NameSchema(statement)).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(stored, want) {
		t.Errorf("stored the keys %q, want %q", stored, want)
	}
}
