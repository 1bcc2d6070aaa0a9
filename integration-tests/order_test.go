package integration_test

import (
	"net/http"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// The next try has to reach storage while the place is kept. A machine that stands still
// spoils a round; a check-out that joins at the end of the line loses every round.
func TestLock_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{
		Circulations:   2,
		CirculationEnv: []string{"CHECKOUT_LOCK_FEATURE_ENABLED=true", "LOCK_TTL_MS=60000", "RETRY_INTERVAL_MS=2000|10000"},
	}, 1)
	for range 5 {
		if p.checkOrder(t) {
			return
		}
	}
	t.Error("a check-out whose first wait ran out was served after one that came later, five times")
}

// checkOrder lets two check-outs of one patron wait for a lock, frees it once the
// first one's first wait has run out, and reports whether that one is lent its book. The
// limit is 1, so the other is refused.
func (p *pair) checkOrder(t *testing.T) bool {
	t.Helper()
	const ranOut = `checkout_lock_acquires_total{outcome="held"}`
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	held := p.acquireLock(t, userID, time.Minute)
	before := sumMetric(t, p, ranOut)
	first := p.startLending(t.Context(), t, 0, books[0], patron)
	p.waitForWaiters(t, 1)
	<-time.After(time.Second) // so that the first one's wait runs out first
	second := p.startLending(t.Context(), t, 1, books[1], patron)
	waitUntil(t, patience, "the first wait has run out", func() bool { return sumMetric(t, p, ranOut) > before })
	p.waitForWaiters(t, 2)
	p.releaseLock(t, held)
	one, two := first.awaitAnswer(), second.awaitAnswer()
	if one.Status+two.Status != http.StatusCreated+http.StatusUnprocessableEntity {
		t.Fatalf("answered %d %s and %d %s, want one 201 and one 422", one.Status, one.Body, two.Status, two.Body)
	}
	return one.Status == http.StatusCreated
}
