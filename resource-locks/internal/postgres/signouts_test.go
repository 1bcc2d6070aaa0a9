package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

func TestSignOutStore(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).Open("")
	store := postgres.NewSignOutStore(db)
	want := func(session uuid.UUID, ended bool) {
		t.Helper()
		if got, err := store.IsSignedOut(t.Context(), session); err != nil || got != ended {
			t.Errorf("got %t, %v, want %t", got, err, ended)
		}
	}
	signOut := func(session uuid.UUID, until time.Time) {
		t.Helper()
		if err := store.SignOut(t.Context(), session, until); err != nil {
			t.Fatal(err)
		}
	}
	first, old, last := uuid.New(), uuid.New(), uuid.New()
	want(first, false)
	signOut(first, time.Now().Add(time.Hour))
	signOut(first, time.Now().Add(time.Hour)) // a repeat, such as of an answer that was lost
	want(first, true)
	signOut(old, time.Now().Add(-time.Hour))
	want(old, true)
	signOut(last, time.Now().Add(time.Hour)) // forgets what is over
	want(old, false)
	want(first, true)
	want(last, true)
}
