package enginetest_test

import (
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
)

func TestStore_Locks(t *testing.T) {
	t.Parallel()
	enginetest.RunLockStore(t, func(*testing.T) (engine.LockStore, func(time.Duration)) {
		s := enginetest.NewStore()
		return s, s.Advance
	})
}

func TestStore_Claims(t *testing.T) {
	t.Parallel()
	enginetest.RunClaimStore(t, func(*testing.T) (engine.ClaimStore, engine.LockStore, func(time.Duration)) {
		s := enginetest.NewStore()
		return s, s, s.Advance
	})
}
