package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

func TestOutage_OfTheSynchronousStandby(t *testing.T) {
	t.Parallel()
	pg := testserver.Start(t, nil)
	p := startPair(t, stack.Options{DatabaseURL: pg.URL(), CirculationEnv: enableLock("LOCK_TTL_MS=1000")}, 3)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	execSQL(t, pg.URL(), `ALTER SYSTEM SET synchronous_standby_names = 'gone'`, `SELECT pg_reload_conf()`)
	plain, keyed := p.newCheckOut(books[0], patron), p.newCheckOut(books[1], patron)
	for _, tt := range []struct {
		name string
		call func() stack.Answer
	}{
		{name: "a plain check-out", call: func() stack.Answer { return p.lendBook(t, 0, books[0], patron) }},
		{name: "the same check-out again", call: func() stack.Answer {
			return callEndpoint(t, p.machines[0], http.MethodPost, checkOutPath, plain)
		}},
		{name: "a check-out with a key", call: func() stack.Answer { return p.lendWithKey(t, 0, "k", keyed) }},
		{name: "its repeat", call: func() stack.Answer { return p.lendWithKey(t, 0, "k", keyed) }},
	} {
		if a := tt.call(); a.Status == http.StatusCreated || a.Status == http.StatusInternalServerError {
			t.Errorf("%s was answered %d %s while the standby was gone", tt.name, a.Status, a.Body)
		}
	}
	execSQL(t, pg.URL(), `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	first := readObject(t, p.lendWithKey(t, 0, "k", keyed), http.StatusCreated)
	again := readObject(t, p.lendWithKey(t, 0, "k", keyed), http.StatusCreated)
	if first["id"] != again["id"] {
		t.Errorf("the repeats were answered with the loans %v and %v, want the same", first["id"], again["id"])
	}
	if n := p.countRecords(t, "/loan-storage/loans?limit=0&query=itemId=="+readPart(first, "itemId").(string)); n != 1 {
		t.Errorf("the book with the key has %d loans, want 1", n)
	}
	if n := p.countOpenLoans(t, id); n > 2 {
		t.Errorf("the patron has %d loans of two books", n)
	}
}
