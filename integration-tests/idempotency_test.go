package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	keysPath     = "/check-out-request-storage"
	checkOutPath = "/circulation/check-out-by-barcode"
)

// lendWithKey sends a check-out with an Idempotency-Key on instance i.
func (p *pair) lendWithKey(t *testing.T, i int, key string, body any) stack.Answer {
	t.Helper()
	machine := p.machines[i]
	machine.Header = addHeader(machine.Header, schemas.IdempotencyKeyHeader, key)
	return callEndpoint(t, machine, http.MethodPost, checkOutPath, body)
}

// startLendingWithKey sends one in another goroutine, independently of the test's context.
func (p *pair) startLendingWithKey(t *testing.T, i int, key string, body any) lending {
	t.Helper()
	machine := p.machines[i]
	machine.Header = addHeader(machine.Header, schemas.IdempotencyKeyHeader, key)
	return startCheckOut(context.WithoutCancel(t.Context()), t, machine, body)
}

// lapseKeyLease lets the lease of a key end now, as the time does some seconds after its holder died.
func (p *pair) lapseKeyLease(t *testing.T, key string) {
	t.Helper()
	execSQL(t, p.databaseURL, "UPDATE "+p.tableName("check_out_request")+
		" SET claimed_date = claimed_date - interval '1 minute' WHERE key = '"+key+"'")
}

// checkSameAnswer fails the test unless status, Location and body are equal.
func checkSameAnswer(t *testing.T, what string, got, want stack.Answer) {
	t.Helper()
	if got.Status != want.Status || string(got.Body) != string(want.Body) ||
		got.Header.Get("Location") != want.Header.Get("Location") {
		t.Errorf("%s: got %d %s %s\nwant %d %s %s", what, got.Status, got.Header.Get("Location"), got.Body, want.Status,
			want.Header.Get("Location"), want.Body)
	}
}

// lendWithKeyForSure repeats a check-out that was not answered in time, as clients with a key may.
func (p *pair) lendWithKeyForSure(t *testing.T, i int, key string, body any) stack.Answer {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		a := p.lendWithKey(t, i, key, body)
		late := a.Status == http.StatusGatewayTimeout || a.Status == http.StatusServiceUnavailable ||
			a.Header.Get(fault.Header) == string(fault.RequestRunning)
		if !late || time.Now().After(end) {
			return a
		}
	}
}

func TestIdempotencyKey_ConcurrentRepeats(t *testing.T) {
	// The test is not parallel, because it sends 200 check-outs at once, or 80 with the race detector.
	const each = 5
	patrons := 20
	if raceDetector {
		patrons = 8
	}
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprintf("lock enabled is %t", enabled), func(t *testing.T) {
			p := startPair(t, stack.Options{
				Circulations: 2, CirculationEnv: enableLock(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled)),
			}, each)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			books := map[string][]string{} // by the patron's id
			for range patrons {
				id, patron := p.addPatron(t)
				books[id] = p.addBooks(t, each)
				for _, book := range books[id] {
					key, both := uuid.NewString(), make([]stack.Answer, 2)
					wg.Go(func() {
						<-begin
						var two sync.WaitGroup
						for i := range both {
							two.Go(func() { both[i] = p.lendWithKeyForSure(t, i, key, p.newCheckOut(book, patron)) })
						}
						two.Wait()
						if both[0].Status != http.StatusCreated {
							t.Errorf("answered %d %s", both[0].Status, both[0].Body)
						}
						checkSameAnswer(t, "the concurrent repeat", both[1], both[0])
						checkSameAnswer(t, "a later repeat", p.lendWithKeyForSure(t, 1, key, p.newCheckOut(book, patron)), both[0])
					})
				}
			}
			close(begin)
			wg.Wait()
			for id, lent := range books { // read after the burst: the host is busy until then
				if n := p.countOpenLoans(t, id); n != each {
					t.Errorf("%d open loans, want %d", n, each)
				}
				for _, book := range lent {
					if got := p.readState(t, id, book); got.Events != 1 || got.Version != 2 {
						t.Errorf("left %+v, want the book lent once", got)
					}
				}
			}
		})
	}
}

func TestIdempotencyKey_PersistentAnswer(t *testing.T) {
	t.Parallel()
	p, q := joinSharedPair(t, 1), joinSharedPair(t, 1)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	first := p.lendWithKey(t, 0, "k", p.newCheckOut(books[0], patron))
	readObject(t, first, http.StatusCreated)

	reused := p.lendWithKey(t, 0, "k", p.newCheckOut(books[1], patron))
	if reused.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(reused.Body), "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("another body: answered %d %s", reused.Status, reused.Body)
	}
	limit := p.lendWithKey(t, 0, "over", p.newCheckOut(books[1], patron))
	if limit.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(limit.Body), "maximum limit of 1 items") {
		t.Errorf("over the limit: answered %d %s", limit.Status, limit.Body)
	}
	back := record{"itemBarcode": books[0], "servicePointId": p.ServicePointID, "checkInDate": "2026-03-01T10:00:00Z"}
	desk := p.machines[0]
	desk.Header = p.signIn(uuid.NewString())
	readObject(t, callEndpoint(t, desk, http.MethodPost, "/circulation/check-in-by-barcode", back), http.StatusOK)

	// Repeats get the first answers, whatever has happened since and however the body is written.
	checkSameAnswer(t, "the repeated check-out", p.lendWithKey(t, 0, "k", p.newCheckOut(books[0], patron)), first)
	checkSameAnswer(t, "the repeated refusal",
		p.lendWithKey(t, 0, "over", fmt.Appendf(nil, "{ \"servicePointId\":%q,\n\"userBarcode\":%q, \"itemBarcode\":%q}",
			p.ServicePointID, patron, books[1])), limit)
	if n := p.countOpenLoans(t, id); n != 0 {
		t.Errorf("%d open loans after the check-in, want none", n)
	}

	_, other := q.addPatron(t)
	readObject(t, q.lendWithKey(t, 0, "k", q.newCheckOut(q.addBooks(t, 1)[0], other)), http.StatusCreated)

	plain := p.lendBook(t, 0, books[0], patron)
	readObject(t, plain, http.StatusCreated)
	if again := p.lendBook(t, 0, books[0], patron); again.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(again.Body), "Item is already checked out") {
		t.Errorf("without a key: answered %d %s", again.Status, again.Body)
	}
}
