package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/resource-locks/internal/engine"
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

// panickingStore has a defect.
type panickingStore struct{ *enginetest.Store }

func (panickingStore) Count(context.Context) ([]engine.KindCount, error) { panic("a defect") }

// The metrics of a scrape share a goroutine, whose panic would end the process.
func TestLocks_CountMakesAPanicAnError(t *testing.T) {
	t.Parallel()
	_, err := engine.NewLocks(panickingStore{enginetest.NewStore()}, &events{}).Count(t.Context())
	if _, is := errors.AsType[*fault.PanicError](err); !is {
		t.Errorf("got %v, want the panic", err)
	}
}

func TestLocks_RefreshShortensALongTTL(t *testing.T) {
	t.Parallel()
	locks := engine.NewLocks(enginetest.NewStore(), &events{})
	key := engine.Key{Namespace: "ns"}
	g, err := locks.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Refresh{Key: key, ID: g.Lock.ID, Owner: "ann", TTL: 2 * engine.MaxTTL}
	got, err := locks.Refresh(t.Context(), r)
	if ttl := got.Lock.ExpiresAt.Sub(got.Lock.RenewedAt); err != nil || ttl != engine.MaxTTL {
		t.Errorf("got a TTL of %s, %v, want %s", ttl, err, engine.MaxTTL)
	}
}
