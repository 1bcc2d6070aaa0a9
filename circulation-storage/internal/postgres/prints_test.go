package postgres_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
)

// Both prints begin before either has written, so each has to wait for the request's row first.
func TestAddPrint_CountsPrintsAtOnce(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id, other := uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{id, other} {
		l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid))`, id)
	}
	store := postgres.NewRecordStore(l.db, func() {})
	before := records.Print{RequestIDs: []string{other.String()}, RequesterID: uuid.NewString()}
	if err := store.AddPrint(l.ctx(), before); err != nil {
		t.Fatal(err)
	}
	held := l.begin(`SELECT FROM {schema}.request WHERE id = $1 FOR UPDATE`, id)
	var both sync.WaitGroup
	for _, at := range []string{"2026-08-21T10:00:00.000+00:00", "2026-08-22T10:00:00.000+00:00"} {
		both.Go(func() {
			p := records.Print{RequestIDs: []string{id.String()}, RequesterID: uuid.NewString(), RequesterName: "Ada", At: at}
			if err := store.AddPrint(l.ctx(), p); err != nil {
				t.Error(err)
			}
		})
	}
	l.waitUntilBlocked(2)
	if err := held.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	if n := l.count(`SELECT (jsonb->'printDetails'->>'printCount')::int FROM {schema}.request WHERE id = $1`, id); n != 2 {
		t.Errorf("the request has %d prints, want 2", n)
	}
	const keptSQL = `SELECT count(*) FROM {schema}.request WHERE id = $1 AND jsonb->'printDetails'->>'requesterId' = $2`
	if l.count(keptSQL, other, before.RequesterID) != 1 {
		t.Error("another request did not keep its print")
	}
}
