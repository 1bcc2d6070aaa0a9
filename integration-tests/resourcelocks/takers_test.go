package resourcelocks

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// takers take new keys through the fronts of flat locks, one after the other, while
// PostgreSQL is killed. A grant that was answered must be stored.
type takers struct {
	cancel  func()
	running sync.WaitGroup
	mu      sync.Mutex
	granted []string // the keys
	err     error
}

// takersOwner holds what takers take.
const takersOwner = "taker"

// startTakers returns once each front has granted some keys.
func startTakers(t *testing.T, at addresses) *takers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	k := &takers{cancel: cancel}
	for _, p := range protocols {
		if p.name == "locktopus" {
			continue // its claims go with their connections
		}
		began := make(chan struct{})
		begin := sync.OnceFunc(func() { close(began) })
		k.running.Go(func() {
			defer begin()
			k.take(ctx, p, at, begin)
		})
		<-began
	}
	return k
}

func (k *takers) take(ctx context.Context, p protocol, at addresses, begin func()) {
	for ctx.Err() == nil {
		key := "taken-" + uuid.NewString()
		_, err := p.acquire(ctx, at, key, takersOwner)
		k.mu.Lock()
		switch {
		case err == nil:
			k.granted = append(k.granted, key)
		case !isOrdinary(err) && ctx.Err() == nil:
			k.err = err
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
		begin()
	}
}

// stop ends all takers. Repeated calls have no effect.
func (k *takers) stop() {
	k.cancel()
	k.running.Wait()
}

// check fails the test if a granted lock is not stored.
func (k *takers) check(t *testing.T, service *pgxpool.Pool) {
	t.Helper()
	k.stop()
	if k.err != nil {
		t.Error(k.err)
	}
	var lost int
	err := service.QueryRow(t.Context(), `
SELECT count(*) FROM unnest($1::text[]) taken
 WHERE NOT EXISTS (SELECT FROM resource_locks.lock l WHERE l.name = taken
 AND l.owner = $2)`, k.granted, takersOwner).Scan(&lost)
	if err != nil || lost > 0 {
		t.Errorf("%d of %d granted locks are lost: %v", lost, len(k.granted), err)
	}
	t.Logf("%d locks were granted until the kill, %d of them are lost", len(k.granted), lost)
}
