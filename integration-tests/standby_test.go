package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

func TestSynchronousStandbyThatIsGone(t *testing.T) {
	t.Parallel()
	pg := ownServer(t)
	p := start(t, stack.Options{DatabaseURL: pg.URL(), CirculationEnv: on("LOCK_TTL_MS=1000")}, 3)
	id, patron := p.patron(t)
	books := p.books(t, 2)
	administrate(t, pg.URL(), `ALTER SYSTEM SET synchronous_standby_names = 'gone'`, `SELECT pg_reload_conf()`)
	plain, keyed := p.checkOut(books[0], patron), p.checkOut(books[1], patron)
	for _, tt := range []struct {
		name string
		call func() stack.Answer
	}{
		{name: "a plain check-out", call: func() stack.Answer { return p.lend(t, 0, books[0], patron) }},
		{name: "the same again", call: func() stack.Answer {
			return do(t, p.machines[0], http.MethodPost, "/circulation/check-out-by-barcode", plain)
		}},
		{name: "one with a key", call: func() stack.Answer { return p.keyed(t, 0, "k", keyed) }},
		{name: "the same repeated", call: func() stack.Answer { return p.keyed(t, 0, "k", keyed) }},
	} {
		if a := tt.call(); a.Status == http.StatusCreated || a.Status == http.StatusInternalServerError {
			t.Errorf("%s was answered %d %s while the standby was gone", tt.name, a.Status, a.Body)
		}
	}
	administrate(t, pg.URL(), `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	first := object(t, p.keyed(t, 0, "k", keyed), http.StatusCreated)
	again := object(t, p.keyed(t, 0, "k", keyed), http.StatusCreated)
	if first["id"] != again["id"] {
		t.Errorf("the repeats were answered with the loans %v and %v, want the same", first["id"], again["id"])
	}
	if n := p.total(t, "/loan-storage/loans?limit=0&query=itemId=="+part(first, "itemId").(string)); n != 1 {
		t.Errorf("the book with the key has %d loans, want 1", n)
	}
	if n := p.open(t, id); n > 2 {
		t.Errorf("the patron has %d loans of two books", n)
	}
}
