package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

type noObserver struct{}

func (noObserver) Observe(engine.Event) {}

// startClaims starts the claims of a process that runs until the test ends.
func startClaims(tb testing.TB, s *schematest.Schema) *engine.Claims {
	tb.Helper()
	claims, _ := runInstance(tb, s)
	return claims
}

// runInstance starts the claims of one more process and waits until it has a lease. stop
// ends it in order.
func runInstance(t testing.TB, s *schematest.Schema) (claims *engine.Claims, stop func()) {
	t.Helper()
	return runInstanceOn(t, postgres.NewClaimStore(s.Open("")))
}

func runInstanceOn(t testing.TB, store engine.ClaimStore) (claims *engine.Claims, stop func()) {
	t.Helper()
	claims = engine.NewClaims(store, noObserver{}, slog.New(slog.DiscardHandler))
	stop = enginetest.RunLoops(claims)
	t.Cleanup(stop)
	waitFor(t, "a lease", func() bool {
		ticket, err := claims.Lock(t.Context(), "probe "+uuid.NewString(), "probe", 0, []engine.Resource{{}})
		return err == nil && claims.Release(t.Context(), ticket) == nil
	})
	return claims, stop
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func lockPath(t *testing.T, claims *engine.Claims, abandon time.Duration, path ...string) *engine.Ticket {
	t.Helper()
	ticket, err := claims.Lock(t.Context(), "ns", "client", abandon, []engine.Resource{{Path: path, Write: true}})
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long until %s", what)
	}
}

// comparing counts the comparisons of its instance's claims.
type comparing struct {
	*postgres.ClaimStore
	pages atomic.Int64
}

func (c *comparing) ClaimsOf(
	ctx context.Context, instance, after uuid.UUID, page []engine.ClaimState,
) ([]engine.ClaimState, error) {
	c.pages.Add(1)
	return c.ClaimStore.ClaimsOf(ctx, instance, after, page)
}

// TestClaims_InstancesWakeEachOther hands one path over between two processes. The comparison of each second
// finds what was missed, so hand-overs without one count. Others may be due to a slow host.
func TestClaims_InstancesWakeEachOther(t *testing.T) {
	t.Parallel()
	const wanted, most = 10, 50
	s := schematest.New(t)
	giver := &comparing{ClaimStore: postgres.NewClaimStore(s.Open(""))}
	taker := &comparing{ClaimStore: postgres.NewClaimStore(s.Open(""))}
	a, _ := runInstanceOn(t, giver)
	b, _ := runInstanceOn(t, taker)
	held, woken := lockPath(t, a, time.Minute, "x"), 0
	for n := 0; woken < wanted; n++ {
		if n == most {
			t.Fatalf("%d of %d hand-overs came before a comparison, want %d", woken, n, wanted)
		}
		next := lockPath(t, b, time.Minute, "x")
		before := taker.pages.Load()
		if err := a.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		await(t, "the other instance holds the path", next.Held())
		if taker.pages.Load() == before {
			woken++
		}
		a, b, giver, taker, held = b, a, taker, giver, next
	}
}

func TestClaims_KilledInstanceLeavesTheWay(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	live, _ := runInstance(t, s)
	dead := postgres.NewClaimStore(s.Open(""))
	instance := uuid.New()
	const lease, abandon = 300 * time.Millisecond, 600 * time.Millisecond
	if err := dead.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"held", "held"} { // the second one waits
		q := engine.Claim{
			ID: uuid.New(), Namespace: "ns", Instance: instance, Abandon: abandon, Owner: path,
			Resources: []engine.Resource{{Path: []string{path}, Write: true}},
		}
		if _, err := dead.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	next, began := lockPath(t, live, 0, "held"), time.Now()
	if err := dead.KeepLease(t.Context(), instance, lease); err != nil {
		t.Fatal(err)
	}
	await(t, "the path of the killed instance is free", next.Held())
	if d := time.Since(began); d < lease+abandon {
		t.Errorf("held after %s, want the lease and the Abandon: %s", d, lease+abandon)
	}
	claims, err := dead.ListClaims(t.Context(), "", 10)
	if err != nil || len(claims) != 1 || claims[0].Number != next.Number {
		t.Errorf("left %+v, %v, want the next one alone", claims, err)
	}
}

func TestClaims_EndedLeaseEndsTickets(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	claims, _ := runInstance(t, s)
	ticket := lockPath(t, claims, time.Minute, "x")
	s.Advance(db, time.Hour)
	await(t, "the ticket is lost", ticket.Lost())
	waitFor(t, "a new lease", func() bool {
		next, err := claims.Lock(t.Context(), "ns", "client", 0, []engine.Resource{{Write: true}})
		return err == nil && next != nil
	})
}

func TestClaims_StoppedInstanceHandsOver(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	a, stop := runInstance(t, s)
	b, _ := runInstance(t, s)
	held, waiting := lockPath(t, a, 0, "x"), lockPath(t, a, time.Minute, "x")
	next := lockPath(t, b, 0, "x")
	a.Disconnect(t.Context(), waiting, false)
	a.Disconnect(t.Context(), held, true)
	stop()
	await(t, "the other instance holds the path", next.Held())
}

// TestClaims_ManyWorkersOfTwoInstances checks that a path never has two holders.
func TestClaims_ManyWorkersOfTwoInstances(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	a, _ := runInstance(t, s)
	b, _ := runInstance(t, s)
	var mu sync.Mutex
	holders, most, turns := 0, 0, 0
	var workers sync.WaitGroup
	for i := range 16 {
		claims := []*engine.Claims{a, b}[i%2]
		workers.Go(func() {
			for range 10 {
				ticket, err := claims.Lock(t.Context(), "ns", fmt.Sprint(i), 0, []engine.Resource{
					{Path: []string{"x"}, Write: true},
				})
				if err != nil {
					t.Error(err)
					return
				}
				<-ticket.Held()
				mu.Lock()
				holders++
				turns++
				most = max(most, holders)
				mu.Unlock()
				mu.Lock()
				holders--
				mu.Unlock()
				if err := claims.Release(t.Context(), ticket); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if most != 1 || turns != 160 {
		t.Errorf("%d turns with up to %d holders, want 160 and 1", turns, most)
	}
}

// Many callers may want all connections for locks. A lost lease would end all web sockets.
func TestClaimStore_BusyPoolCostsNoLease(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).OpenAlone(2) // one of them is for lists
	store := postgres.NewClaimStore(db)
	defer db.HoldConnection(t)()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	instance := uuid.New()
	if err := store.StartLease(ctx, instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := store.KeepLease(ctx, instance, time.Hour); err != nil {
		t.Error(err)
	}
}

// TestClaimStore_BusyListsDelayNoGrants takes all connections for lists. The loop that wakes waiters
// compares claims too.
func TestClaimStore_BusyListsDelayNoGrants(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).OpenAlone(4)
	store := postgres.NewClaimStore(db)
	for range db.Pool().Config().MaxConns {
		conn, err := db.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := store.NewGrants(ctx, uuid.New()); err != nil {
		t.Error(err)
	}
	if _, err := store.ClaimsOf(ctx, uuid.New(), uuid.Nil, make([]engine.ClaimState, 1)); err != nil {
		t.Error(err)
	}
	if _, _, err := store.Settle(ctx, uuid.New()); err != nil {
		t.Error(err)
	}
}
