package integration_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// BenchmarkCheckOut measures one check-out without contention, from request to answer,
// with the feature off and on. The difference is the cost of the lock.
func BenchmarkCheckOut(b *testing.B) {
	for _, enabled := range []bool{false, true} {
		b.Run(fmt.Sprintf("lock=%t", enabled), func(b *testing.B) {
			p := startPair(b, stack.Options{
				CirculationEnv: enableLock(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled)),
			}, 9999)
			_, patron := p.addPatron(b)
			for b.Loop() {
				b.StopTimer()
				book := p.addBooks(b, 1)[0]
				b.StartTimer()
				if a := p.lendBook(b, 0, book, patron); a.Status != http.StatusCreated {
					b.Fatalf("answered %d %s", a.Status, a.Body)
				}
			}
		})
	}
}

// BenchmarkHandOver measures the time from a release until the lock is granted to a
// caller that waits in the other storage.
func BenchmarkHandOver(b *testing.B) {
	p := startPair(b, stack.Options{Storages: 2}, 1)
	patron := uuid.NewString()
	for b.Loop() {
		b.StopTimer()
		held := p.acquireLock(b, patron, outlastsTests)
		granted := make(chan stack.Answer, 1)
		go func() {
			a, err := p.storageAt(1).Do(b.Context(), http.MethodPost, acquirePath, record{"userId": patron, "waitMs": 5000})
			if err != nil {
				b.Error(err)
			}
			granted <- a
		}()
		p.waitForWaiters(b, 1)
		b.StartTimer()
		p.releaseLock(b, held)
		a := <-granted
		b.StopTimer()
		var next struct{ ID string }
		if err := a.JSON(&next); err != nil {
			b.Fatal(err)
		}
		p.releaseLock(b, next.ID)
		b.StartTimer()
	}
}
