package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

func TestClaims_ReleaseDoesNotEndWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, store)
		held := lockPath(t, p, "a")
		left, leave := context.WithCancel(t.Context())
		leave()
		if err := p.Release(left, held); err != nil {
			t.Error(err)
		}
		wantClaims(t, "after the release", store, 0)
	})
}

// Otherwise the claim would stay for its Abandon.
func TestClaims_StoppedProcessSendsTheEndsThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, store)
		released := lockPath(t, p, "a")
		store.Fail(fault.New(fault.Unavailable, "away"))
		if err := p.Release(t.Context(), released); err == nil {
			t.Error("a release succeeded without the store")
		}
		p.Disconnect(t.Context(), released, false)
		store.Fail(nil)
		p.stop()
		wantClaims(t, "after the stop", store, 0)
	})
}
