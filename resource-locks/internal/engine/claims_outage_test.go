package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

func TestClaims_EndOfAConnectionIsRepeatedAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, store)
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		store.Fail(fault.New(fault.Unavailable, "away"))
		if err := p.Release(t.Context(), first); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want the outage", err)
		}
		p.Disconnect(t.Context(), first, true)
		<-time.After(3 * time.Second / 2) // comparisons fail
		store.Fail(nil)
		ended := time.Now()
		<-second.Held()
		if d := time.Since(ended); d < abandon || d > abandon+3*time.Second/2 {
			t.Errorf("held after %s, want about %s", d, abandon)
		}
		wantTicket(t, "after a short outage", second, true, false)
	})
}

func TestClaims_LostLeaseEndsAllTickets(t *testing.T) {
	t.Parallel()
	t.Run("the store cannot be reached for longer than the lease", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := enginetest.NewStore()
			p := startProcess(t, store)
			held, waiting := lockPath(t, p, "a"), lockPath(t, p, "a")
			store.Fail(fault.New(fault.Unavailable, "away"))
			failed := time.Now()
			<-held.Lost()
			<-waiting.Lost()
			if d := time.Since(failed); d > 3*time.Second {
				t.Errorf("lost after %s: the store may have given the path to another by then", d)
			}
			if _, err := p.Lock(t.Context(), "ns", "client", 0, []engine.Resource{{}}); !fault.Is(err, fault.Unavailable) {
				t.Errorf("a claim without a lease: %v", err)
			}
			store.Fail(nil)
			<-time.After(2 * time.Second)
			lockPath(t, p, "other")
		})
	})
	t.Run("the store has ended it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := enginetest.NewStore()
			p := startProcess(t, store)
			held := lockPath(t, p, "a")
			store.Advance(time.Minute)
			<-held.Lost()
			next := lockPath(t, p, "a")
			<-next.Held()
			wantTicket(t, "under the next lease", next, true, false)
		})
	})
}

func TestClaims_LeaseReturnsSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, store)
		held := lockPath(t, p, "a")
		store.Fail(fault.New(fault.Unavailable, "away"))
		<-held.Lost()
		<-time.After(50 * time.Millisecond) // after a try
		store.Fail(nil)
		const soon = 300 * time.Millisecond
		<-time.After(soon)
		next, err := p.Lock(t.Context(), "ns", "owner", 0, []engine.Resource{{}})
		if err != nil {
			t.Fatalf("%s after the outage: %v", soon, err)
		}
		p.Disconnect(t.Context(), next, true)
	})
}

// crashingStore answers one more call for the lease, which a crash undoes. Then the process does not
// reach it any more.
type crashingStore struct {
	*enginetest.Store
	crashes, crashed atomic.Bool
}

// away is the error after the crash, nil before.
func (s *crashingStore) away() error {
	if s.crashed.Load() {
		return fault.New(fault.Unavailable, "away")
	}
	return nil
}

func (s *crashingStore) KeepLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	if s.crashes.Load() {
		defer s.crashed.Store(true)
		return s.away()
	}
	return s.Store.KeepLease(ctx, instance, length)
}

func (s *crashingStore) ClaimsOf(ctx context.Context, instance, after uuid.UUID,
	page []engine.ClaimState,
) ([]engine.ClaimState, error) {
	states, err := s.Store.ClaimsOf(ctx, instance, after, page)
	return states, errors.Join(err, s.away())
}

// Another process may reach the store before the one that believes in its lease.
func TestClaims_CrashOfTheStoreMakesNoTwoHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &crashingStore{Store: enginetest.NewStore()}
		a, b := startProcess(t, store), startProcess(t, store.Store)
		all := []engine.Resource{{Write: true}}
		held, err := a.Lock(t.Context(), "ns", "client", 0, all)
		if err != nil {
			t.Fatal(err)
		}
		next, err := b.Lock(t.Context(), "ns", "client", 0, all)
		if err != nil {
			t.Fatal(err)
		}
		store.crashes.Store(true)
		<-next.Held()
		synctest.Wait() // for what happens at the same time
		wantTicket(t, "when the next one holds the path", held, true, true)
	})
}

// TestClaims_GrantAfterTheLeaseIsNotHeld has no loops, as a process that was frozen and runs again. Its
// lease is over by its own clock, and perhaps not in the store.
func TestClaims_GrantAfterTheLeaseIsNotHeld(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"the lease is kept": true, "the store has ended the lease": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := enginetest.NewStore()
				p := &process{events: &events{}}
				p.Claims = engine.NewClaims(store, p.events, slog.New(slog.NewTextHandler(t.Output(), nil)))
				if err := p.RenewLease(t.Context()); err != nil {
					t.Fatal(err)
				}
				first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
				<-time.After(3 * time.Second)
				if !kept {
					store.Advance(time.Second)
				}
				if err := p.Release(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				wantTicket(t, "after the lease", second, false, false)
				if err := p.RenewLease(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer enginetest.RunLoops(p.Claims)()
				<-time.After(2 * time.Second)
				wantTicket(t, "with a lease again", second, kept, !kept)
			})
		})
	}
}

// lossyStore loses answers of Enqueue. Its late calls reach the store only when they are
// sent on.
type lossyStore struct {
	*enginetest.Store
	mu   sync.Mutex
	late *engine.Claim
	lose func(engine.Claim) bool // whether Enqueue runs before its answer is lost
}

func (s *lossyStore) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lose == nil {
		return s.Store.Enqueue(ctx, q)
	}
	if s.lose(q) {
		if _, err := s.Store.Enqueue(ctx, q); err != nil {
			return engine.Place{}, err
		}
	} else {
		s.late = &q
	}
	s.lose = nil
	return engine.Place{}, fault.Wrap(errors.New("cut"), fault.Timeout, "timed out")
}

// forgetfulStore loses the answer of a Withdraw that has run.
type forgetfulStore struct{ *enginetest.Store }

func (s forgetfulStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID,
	error,
) {
	_, err := s.Store.Withdraw(ctx, caller, namespace, id)
	return nil, errors.Join(err, fault.Wrap(errors.New("cut"), fault.Timeout, "timed out"))
}

func TestClaims_LostAnswerOfReleaseWakesTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, forgetfulStore{enginetest.NewStore()})
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		if err := p.Release(t.Context(), first); !fault.Is(err, fault.Timeout) {
			t.Fatalf("got %v, want the lost answer", err)
		}
		p.Disconnect(t.Context(), first, true)
		released := time.Now()
		select {
		case <-second.Held():
		case <-time.After(2 * time.Second):
			t.Errorf("the next does not hold the path %s after the release", time.Since(released))
		}
	})
}

// lateStore answers ClaimsOf when a claim was stored after it had read the store.
type lateStore struct {
	*enginetest.Store
	read, stored chan struct{}
}

func (s lateStore) ClaimsOf(ctx context.Context, instance, after uuid.UUID,
	page []engine.ClaimState,
) ([]engine.ClaimState, error) {
	states, err := s.Store.ClaimsOf(ctx, instance, after, page)
	select {
	case s.read <- struct{}{}:
		<-s.stored
	default:
	}
	return states, err
}

func TestClaims_ComparisonLosesNoClaimThatIsStoredMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := lateStore{enginetest.NewStore(), make(chan struct{}), make(chan struct{})}
		p := startProcess(t, store)
		<-store.read
		meanwhile := lockPath(t, p, "a")
		store.stored <- struct{}{}
		synctest.Wait()
		wantTicket(t, "after the comparison", meanwhile, true, false)
	})
}

func TestClaims_LostAnswerOfEnqueueLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"the claim was stored": true, "the claim is stored later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &lossyStore{Store: enginetest.NewStore(), lose: func(engine.Claim) bool { return stored }}
				p := startProcess(t, store)
				if _, err := p.Lock(t.Context(), "ns", "client", abandon, []engine.Resource{{}}); !fault.Is(err, fault.Timeout) {
					t.Fatalf("got %v, want the lost answer", err)
				}
				<-time.After(2 * time.Second)
				if !stored {
					if _, err := store.Store.Enqueue(t.Context(), *store.late); err != nil {
						t.Fatal(err)
					}
				}
				next := lockPath(t, p, "a")
				failed := time.Now()
				<-next.Held()
				if d := time.Since(failed); d > 2*time.Second {
					t.Errorf("the lost claim stayed for %s", d)
				}
				wantClaims(t, "at the end", store.Store, 1)
			})
		})
	}
}

// stuckStore is a lossyStore that withdraws no claim of the frozen namespace.
type stuckStore struct{ *lossyStore }

func (s stuckStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID,
	error,
) {
	if namespace == frozen {
		return frozenStore{s.Store}.Disconnect(ctx, caller, namespace, id)
	}
	return s.Store.Withdraw(ctx, caller, namespace, id)
}

func TestClaims_LateClaimInAFrozenNamespaceDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &lossyStore{Store: enginetest.NewStore(), lose: func(engine.Claim) bool { return false }}
		a, b := startProcess(t, store.Store), startProcess(t, stuckStore{store})
		_, err := b.Lock(t.Context(), "other", "client", abandon, []engine.Resource{{}})
		if !fault.Is(err, fault.Timeout) {
			t.Fatalf("got %v, want the lost answer", err)
		}
		<-time.After(2 * time.Second) // the process has withdrawn the claim before it is stored
		store.late.Namespace = frozen
		if _, err := store.Store.Enqueue(t.Context(), *store.late); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			wantSoonWoken(t, a, b)
			<-time.After(300 * time.Millisecond)
		}
		gone := lockPath(t, b, "gone")
		claims, err := store.ListClaims(t.Context(), "ns", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.ForceWithdraw(t.Context(), "ns", claims[0].ID, engine.Note{By: "ann", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-gone.Lost():
		case <-time.After(time.Minute):
			t.Error("the connection does not notice the forced release")
		}
	})
}

// frozenStore has a namespace that another process holds: no end reaches it.
type frozenStore struct{ *enginetest.Store }

const frozen = "frozen"

func (s frozenStore) Disconnect(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID,
	error,
) {
	if namespace == frozen {
		<-ctx.Done()
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "timed out")
	}
	return s.Store.Disconnect(ctx, caller, namespace, id)
}

func TestClaims_FrozenNamespaceDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		a, b := startProcess(t, store), startProcess(t, frozenStore{store})
		resources := []engine.Resource{{Path: []string{"a"}, Write: true}}
		const ends = 20 // all of them together would take longer than a round
		for range ends {
			stuck, err := b.Lock(t.Context(), frozen, "client", abandon, resources)
			if err != nil {
				t.Fatal(err)
			}
			b.Disconnect(t.Context(), stuck, true)
		}
		for range 10 {
			wantSoonWoken(t, a, b)
			<-time.After(300 * time.Millisecond)
		}
		unsent := lockPath(t, b, "unsent")
		store.Fail(fault.New(fault.Unavailable, "away"))
		b.Disconnect(t.Context(), unsent, true)
		store.Fail(nil)
		wantClaims(t, "before the abandon", store, ends+1)
		<-time.After(abandon + 5*time.Second)
		wantClaims(t, "the frozen ones", store, ends)
	})
}
