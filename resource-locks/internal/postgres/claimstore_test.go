package postgres_test

import (
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/pgtest"
)

func TestClaimStore(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			enginetest.RunClaimStore(t, func(t *testing.T) (engine.ClaimStore, engine.LockStore, func(time.Duration)) {
				s := pgtest.New(t)
				db := s.Open(parameters)
				return postgres.NewClaimStore(db), postgres.NewLockStore(db), func(d time.Duration) { s.Advance(db, d) }
			})
		})
	}
}
