package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	keysPath     = "/check-out-request-storage"
	checkOutPath = "/circulation/check-out-by-barcode"
)

// keyed sends a check-out with an Idempotency-Key on instance i.
func (p *pair) keyed(t *testing.T, i int, key string, body any) stack.Answer {
	t.Helper()
	machine := p.machines[i]
	machine.Header = http.Header{schemas.IdempotencyKeyHeader: {key}}
	return do(t, machine, http.MethodPost, checkOutPath, body)
}

// keyedLater sends one in another goroutine.
func (p *pair) keyedLater(t *testing.T, i int, key string, body any) lending {
	t.Helper()
	l := lending{answered: make(chan stack.Answer, 1)}
	machine := p.machines[i]
	machine.Header = http.Header{schemas.IdempotencyKeyHeader: {key}}
	go func() {
		a, err := machine.Do(context.WithoutCancel(t.Context()), http.MethodPost, checkOutPath, body)
		if err != nil {
			t.Errorf("check-out: %v", err)
		}
		l.answered <- a
	}()
	return l
}

// sameAnswer fails the test unless the machine cannot tell the two apart.
func sameAnswer(t *testing.T, what string, got, want stack.Answer) {
	t.Helper()
	if got.Status != want.Status || string(got.Body) != string(want.Body) || got.Header.Get("Location") != want.Header.Get("Location") {
		t.Errorf("%s: got %d %s %s\nwant %d %s %s", what, got.Status, got.Header.Get("Location"), got.Body, want.Status, want.Header.Get("Location"), want.Body)
	}
}

func TestOfTwoCheckOutsWithOneKeyOneLendsAndBothAreAnsweredAlike(t *testing.T) {
	// 200 check-outs at once have the machine to themselves.
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprintf("lock enabled is %t", enabled), func(t *testing.T) {
			const patrons, each = 20, 5
			p := start(t, stack.Options{Circulations: 2, CirculationEnv: on(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled))}, each)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			ids := make([]string, patrons)
			for n := range ids {
				id, patron := p.patron(t)
				ids[n] = id
				for _, book := range p.books(t, each) {
					key, both := uuid.NewString(), make([]stack.Answer, 2)
					wg.Go(func() {
						<-begin
						var two sync.WaitGroup
						for i := range both {
							two.Go(func() { both[i] = p.keyed(t, i, key, p.checkOut(book, patron)) })
						}
						two.Wait()
						if both[0].Status != http.StatusCreated {
							t.Errorf("answered %d %s", both[0].Status, both[0].Body)
						}
						sameAnswer(t, "the other one", both[1], both[0])
						sameAnswer(t, "a later one", p.keyed(t, 1, key, p.checkOut(book, patron)), both[0])
						if got := p.state(t, id, book); got.Events != 1 || got.Version != 2 {
							t.Errorf("left %+v, want the book lent once", got)
						}
					})
				}
			}
			close(begin)
			wg.Wait()
			for _, id := range ids {
				if n := p.open(t, id); n != each {
					t.Errorf("%d open loans, want %d", n, each)
				}
			}
		})
	}
}

func TestAKeyIsOnePersistentAnswerForOneBodyInOneTenant(t *testing.T) {
	t.Parallel()
	p, q := start(t, stack.Options{CirculationEnv: on()}, 1), start(t, stack.Options{CirculationEnv: on()}, 1)
	id, patron := p.patron(t)
	books := p.books(t, 2)
	first := p.keyed(t, 0, "k", p.checkOut(books[0], patron))
	object(t, first, http.StatusCreated)

	reused := p.keyed(t, 0, "k", p.checkOut(books[1], patron))
	if reused.Status != http.StatusUnprocessableEntity || !strings.Contains(string(reused.Body), "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("another body: answered %d %s", reused.Status, reused.Body)
	}
	limit := p.keyed(t, 0, "over", p.checkOut(books[1], patron))
	if limit.Status != http.StatusUnprocessableEntity || !strings.Contains(string(limit.Body), "maximum limit of 1 items") {
		t.Errorf("one too many: answered %d %s", limit.Status, limit.Body)
	}
	back := record{"itemBarcode": books[0], "servicePointId": p.ServicePointID, "checkInDate": "2026-03-01T10:00:00Z"}
	desk := p.machines[0]
	desk.Header = http.Header{okapi.UserIDHeader: {uuid.NewString()}}
	object(t, do(t, desk, http.MethodPost, "/circulation/check-in-by-barcode", back), http.StatusOK)

	// All of it is as it was, whatever has happened since and however it is written.
	sameAnswer(t, "the first again", p.keyed(t, 0, "k", p.checkOut(books[0], patron)), first)
	sameAnswer(t, "the refusal again", p.keyed(t, 0, "over", fmt.Appendf(nil, "{ \"servicePointId\":%q,\n\"userBarcode\":%q, \"itemBarcode\":%q}",
		p.ServicePointID, patron, books[1])), limit)
	if n := p.open(t, id); n != 0 {
		t.Errorf("%d open loans, want none: it was taken back", n)
	}

	_, other := q.patron(t)
	object(t, q.keyed(t, 0, "k", q.checkOut(q.books(t, 1)[0], other)), http.StatusCreated)

	plain := p.lend(t, 0, books[0], patron)
	object(t, plain, http.StatusCreated)
	if again := p.lend(t, 0, books[0], patron); again.Status != http.StatusUnprocessableEntity || !strings.Contains(string(again.Body), "Item is already checked out") {
		t.Errorf("without a key: answered %d %s", again.Status, again.Body)
	}
}
