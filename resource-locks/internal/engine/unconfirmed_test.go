package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

// unconfirmedStore is an old primary while gone: it loses answers of Withdraw, whose grants it shows, and
// confirms nothing.
type unconfirmedStore struct {
	*enginetest.Store
	gone atomic.Bool // the standby
}

func (s *unconfirmedStore) confirm() error {
	if s.gone.Load() {
		return fault.New(fault.Timeout, "timed out")
	}
	return nil
}

func (s *unconfirmedStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID,
	error,
) {
	granted, err := s.Store.Withdraw(ctx, caller, namespace, id)
	return granted, errors.Join(err, s.confirm())
}

func (s *unconfirmedStore) NoteGrants(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	held, err := s.Store.NoteGrants(ctx, ids)
	return held, errors.Join(err, s.confirm())
}

// Without the standby a new primary may give the path to another.
func TestClaims_UnconfirmedGrantIsNotHeld(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"granted by its own process": false, "granted by another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &unconfirmedStore{Store: enginetest.NewStore()}
				a := startProcess(t, store)
				b := a
				if others {
					b = startProcess(t, store)
				}
				first, second := lockPath(t, a, "a"), lockPath(t, b, "a")
				store.gone.Store(true)
				if err := a.Release(t.Context(), first); !fault.Is(err, fault.Timeout) {
					t.Fatalf("got %v, want the lost answer", err)
				}
				a.Disconnect(t.Context(), first, false)
				<-time.After(5 * time.Second) // several comparisons
				wantTicket(t, "while nothing is confirmed", second, false, false)
				store.gone.Store(false)
				select {
				case <-second.Held():
				case <-time.After(2 * time.Second):
					t.Error("the claim is not held soon after the standby has returned")
				}
			})
		})
	}
}

// staleStore answers NewGrants like an old primary that has granted each claim, and all else like the new one.
type staleStore struct{ *enginetest.Store }

func (s staleStore) NewGrants(ctx context.Context, instance uuid.UUID) (granted []uuid.UUID, err error) {
	claims, err := s.ListClaims(ctx, "", engine.PageSize)
	for _, c := range claims {
		if c.Instance == instance {
			granted = append(granted, c.ID)
		}
	}
	return granted, err
}

// Some connections may lead to an old primary.
func TestClaims_GrantOfAnOldPrimaryIsNotHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, staleStore{enginetest.NewStore()})
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		<-time.After(time.Second)
		wantTicket(t, "while the first has the path", second, false, false)
		if err := p.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		wantTicket(t, "after its release", second, true, false)
	})
}

// slowConfirmStore confirms one lease after a wait for another standby.
type slowConfirmStore struct {
	*enginetest.Store
	wait      time.Duration
	confirmed chan struct{}
}

func (s *slowConfirmStore) StartLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	err := s.Store.StartLease(ctx, instance, length)
	if err == nil && s.wait > 0 {
		<-time.After(s.wait)
		s.wait = 0
		close(s.confirmed)
	}
	return err
}

// A lease that is over before it is confirmed would end the connections that come meanwhile.
func TestClaims_LeaseThatIsConfirmedTooLateIsBegunAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowConfirmStore{Store: enginetest.NewStore(), confirmed: make(chan struct{})}
		p := startProcess(t, store)
		held := lockPath(t, p, "a")
		store.wait = 4 * time.Second
		store.Fail(fault.New(fault.Unavailable, "away"))
		<-held.Lost()
		store.Fail(nil)
		<-store.confirmed
		const soon = 300 * time.Millisecond
		<-time.After(soon)
		next, err := p.Lock(t.Context(), "ns", "owner", 0, []engine.Resource{{}})
		if err != nil {
			t.Fatalf("%s after the lease was confirmed: %v", soon, err)
		}
		<-time.After(5 * time.Second)
		wantTicket(t, "after several more calls for the lease", next, false, false)
	})
}
