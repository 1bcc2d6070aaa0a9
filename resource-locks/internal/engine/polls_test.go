package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine/enginetest"
)

// pollStore counts the looks for new grants.
type pollStore struct {
	*enginetest.Store
	polls atomic.Int64
}

func (s *pollStore) NewGrants(ctx context.Context, instance uuid.UUID) ([]uuid.UUID, error) {
	s.polls.Add(1)
	return s.Store.NewGrants(ctx, instance)
}

func TestClaims_LooksOftenWhileAClaimWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &pollStore{Store: enginetest.NewStore()}
		p := startProcess(t, store)
		want := func(when string, often bool) {
			t.Helper()
			before := store.polls.Load()
			<-time.After(2 * time.Second)
			if n := store.polls.Load() - before; (n > 10) != often {
				t.Errorf("%s: %d looks in 2 s", when, n)
			}
		}
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		want("while a claim waits", true)
		if err := p.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		want("once it is held", false)
		if err := p.Release(t.Context(), lockPath(t, p, "a")); err != nil {
			t.Fatal(err)
		}
		want("after one that waited", false)
		p.Disconnect(t.Context(), second, false)
		wantTicket(t, "after one that the client did not know", lockPath(t, p, "a"), true, false)
	})
}

// A claim that a comparison has read may lose its connection before the answer.
func TestClaims_ComparisonLeavesAnEndedClaimToItsAbandon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := lateStore{enginetest.NewStore(), make(chan struct{}), make(chan struct{})}
		p := startProcess(t, store)
		held := lockPath(t, p, "a")
		<-store.read
		p.Disconnect(t.Context(), held, true)
		store.stored <- struct{}{}
		<-time.After(abandon - time.Second)
		wantClaims(t, "before its Abandon is over", store.Store, 1)
	})
}
