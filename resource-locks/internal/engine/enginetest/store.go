// Package enginetest has an in-memory store of locks and claims for tests of the fronts,
// and the contracts of the engine's stores as tests.
package enginetest

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
)

// Store keeps locks and claims in memory. It is safe for concurrent use. Several
// processes of a test may share one.
type Store struct {
	mu      sync.Mutex
	ahead   time.Duration // of time.Now
	failure error

	locks    map[engine.Key]*record
	fence    int64
	releases []engine.Release // oldest first

	leases     map[uuid.UUID]time.Time // when they end
	namespaces map[string]*namespace
}

var (
	_ engine.LockStore  = (*Store)(nil)
	_ engine.ClaimStore = (*Store)(nil)
)

// NewStore returns an empty store. Its clock is time.Now, so it works in a bubble of
// testing/synctest.
func NewStore() *Store {
	return &Store{locks: map[engine.Key]*record{}, leases: map[uuid.UUID]time.Time{}, namespaces: map[string]*namespace{}}
}

// Advance sets the store's clock ahead by d.
func (s *Store) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// Fail makes all calls fail with err and change nothing, until Fail(nil).
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// run runs f, at the time of the store's clock, and nothing else meanwhile.
func (s *Store) run(ctx context.Context, f func(now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.failure); err != nil {
		return err
	}
	return f(s.now())
}

// answer is run for what f returns.
func answer[T any](ctx context.Context, s *Store, f func(now time.Time) (T, error)) (result T, err error) {
	err = s.run(ctx, func(now time.Time) (err error) {
		result, err = f(now)
		return err
	})
	return result, err
}

func (s *Store) now() time.Time { return time.Now().Add(s.ahead).UTC().Truncate(time.Microsecond) }
