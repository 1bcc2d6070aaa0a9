package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

// The second try has to arrive while the place is kept. A host that stands still
// spoils a round; a request that joins at the end loses every round.
func TestCheckoutLockRoutes_ServeWaitersInOrderOfTheirFirstTry(t *testing.T) {
	t.Parallel()
	a := serve(t, newLockAPI(t))
	for range 5 {
		if a.race(t) {
			return
		}
	}
	t.Error("a request whose first wait ran out was served after one that came later, five times")
}

// race reports whether the first of two waiters is served first, although its wait runs
// out before the lock is free and it has to ask again.
func (s served) race(t *testing.T) bool {
	t.Helper()
	ann := uuid.New()
	held := s.mustPost(t, ann, `,"ttlMs":60000`)
	body := fmt.Sprintf(`,"ttlMs":60000,"requestId":%q,"waitMs":`, uuid.New())
	tried := s.send(t.Context(), ann, body+"4000")
	s.line.untilWaiting(t, 1)
	second := s.send(t.Context(), ann, fmt.Sprintf(`,"ttlMs":60000,"requestId":%q,"waitMs":10000`, uuid.New()))
	s.line.untilWaiting(t, 2)
	if got := <-tried; got.status != http.StatusServiceUnavailable {
		t.Fatalf("the first try got %d %s, want 503", got.status, got.body)
	}
	first := s.send(t.Context(), ann, body+"10000")
	s.line.untilWaiting(t, 2)
	wantStatus(t, "release", s.do(http.MethodDelete, "/"+held.ID, ""), 204)
	var winner result
	loser, won := second, true
	select {
	case winner = <-first:
	case winner = <-second:
		loser, won = first, false
	}
	wantStatus(t, "release", s.do(http.MethodDelete, "/"+winner.lock(t).ID, ""), 204)
	wantStatus(t, "release", s.do(http.MethodDelete, "/"+(<-loser).lock(t).ID, ""), 204)
	return won
}
