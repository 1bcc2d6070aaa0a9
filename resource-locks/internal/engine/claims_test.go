package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

// events records what an engine reports.
type events struct {
	mu  sync.Mutex
	all []engine.Event
}

func (e *events) Observe(event engine.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// kinds returns the kinds of the events so far, and forgets them.
func (e *events) kinds() []engine.EventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []engine.EventKind
	for _, event := range e.all {
		kinds = append(kinds, event.Kind)
	}
	e.all = nil
	return kinds
}

// process is one process of the service in a bubble of synctest.
type process struct {
	*engine.Claims
	*events
	stop func() // ends the loops and waits for their end
}

// startProcess starts the loops and waits until it has a lease.
func startProcess(t *testing.T, store engine.ClaimStore) *process {
	t.Helper()
	p := &process{events: &events{}}
	p.Claims = engine.NewClaims(store, p.events, slog.New(slog.NewTextHandler(t.Output(), nil)))
	p.stop = enginetest.RunLoops(p.Claims)
	t.Cleanup(p.stop)
	synctest.Wait()
	return p
}

const abandon = 10 * time.Second

func lockPath(t *testing.T, p *process, segments ...string) *engine.Ticket {
	t.Helper()
	ticket, err := p.Lock(t.Context(), "ns", "client", abandon, []engine.Resource{{Path: segments, Write: true}})
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func wantTicket(t *testing.T, when string, ticket *engine.Ticket, held, lost bool) {
	t.Helper()
	if isDone(ticket.Held()) != held || isDone(ticket.Lost()) != lost {
		t.Errorf("%s: claim %d is held %t, lost %t, want %t, %t",
			when, ticket.Number, isDone(ticket.Held()), isDone(ticket.Lost()), held, lost)
	}
}

// wantClaims checks how many claims the store has.
func wantClaims(t *testing.T, when string, store *enginetest.Store, n int) {
	t.Helper()
	claims, err := store.ListClaims(t.Context(), "", 2*engine.PageSize)
	if err != nil || len(claims) != n {
		t.Errorf("%s: the store has %+v, %v, want %d claims", when, claims, err, n)
	}
}

func TestClaims_ReleaseWakesTheNextAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, enginetest.NewStore())
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a", "b")
		wantTicket(t, "first", first, true, false)
		wantTicket(t, "second", second, false, false)
		if err := p.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		wantTicket(t, "after the release", second, true, false)
		want := []engine.EventKind{engine.EventGranted, engine.EventQueued, engine.EventReleased, engine.EventGranted}
		if got := p.kinds(); !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	})
}

func TestClaims_AnotherProcessIsWokenWithin50ms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		a, b := startProcess(t, store), startProcess(t, store)
		lockPath(t, b, "held before")
		wantSoonWoken(t, a, b)
	})
}

// wantSoonWoken lets b wait for a claim of a, and leaves nothing.
func wantSoonWoken(t *testing.T, a, b *process) {
	t.Helper()
	first, second := lockPath(t, a, "a"), lockPath(t, b, "a")
	<-time.After(time.Second)
	if err := a.Release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	released := time.Now()
	<-second.Held()
	if late := time.Since(released); late > 50*time.Millisecond {
		t.Errorf("woken after %s", late)
	}
	if err := b.Release(t.Context(), second); err != nil {
		t.Fatal(err)
	}
}

func TestClaims_DisconnectedClaimEndsAfterItsAbandon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, enginetest.NewStore())
		first, waiting, last := lockPath(t, p, "a"), lockPath(t, p, "a"), lockPath(t, p, "a")
		gone, cancel := context.WithCancel(t.Context())
		cancel() // as a connection's context is when it has ended
		p.Disconnect(gone, waiting, false)
		ended := time.Now()
		p.Disconnect(gone, first, true)
		<-last.Held()
		if d := time.Since(ended); d < abandon || d > abandon+50*time.Millisecond {
			t.Errorf("held after %s, want %s", d, abandon)
		}
		if got := p.kinds(); !slices.Contains(got, engine.EventExpired) {
			t.Errorf("events %v, want the end of the first claim", got)
		}
	})
}

func TestClaims_StoppedProcessLeavesItsHeldClaimsForTheirAbandon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		a, b := startProcess(t, store), startProcess(t, store)
		lockPath(t, a, "a")
		lockPath(t, a, "a")
		next := lockPath(t, b, "a")
		a.stop()
		stopped := time.Now()
		<-next.Held()
		if d := time.Since(stopped); d < abandon || d > abandon+50*time.Millisecond {
			t.Errorf("held after %s, want %s", d, abandon)
		}
		wantClaims(t, "at the end", store, 1)
	})
}

func TestClaims_ForcedReleaseEndsTheTicketWhereverItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		a, b := startProcess(t, store), startProcess(t, store)
		held, next := lockPath(t, a, "a", "b"), lockPath(t, b, "a")
		claims, err := store.ListClaims(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"", " \t\n"} {
			note := engine.Note{By: "ann", Reason: reason}
			if err := b.ForceWithdraw(t.Context(), "ns", claims[0].ID, note); !fault.Is(err, fault.Invalid) {
				t.Fatalf("with the reason %q: %v", reason, err)
			}
		}
		if err := b.ForceWithdraw(t.Context(), "ns", claims[0].ID, engine.Note{By: "ann", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		wantTicket(t, "the next one", next, true, false)
		<-held.Lost()
		releases, err := store.Releases(t.Context(), 1)
		if err != nil || len(releases) != 1 || releases[0].Name != "write /a/b" || releases[0].By != "ann" {
			t.Errorf("noted %+v, %v", releases, err)
		}
	})
}

func TestClaims_RefuseWhatNoStoreKeeps(t *testing.T) {
	t.Parallel()
	p := engine.NewClaims(enginetest.NewStore(), &events{}, slog.New(slog.DiscardHandler))
	long := make([]byte, engine.MaxPathBytes)
	for i := range long {
		long[i] = 'x'
	}
	deep := make([]engine.Resource, 40)
	for i := range deep {
		deep[i].Path = []string{string(long[:engine.MaxPathBytes-2])}
	}
	for name, resources := range map[string][]engine.Resource{
		"none":           nil,
		"too many":       make([]engine.Resource, engine.MaxResources+1),
		"a long path":    {{Path: []string{string(long)}}},
		"a deep path":    {{Path: make([]string, engine.MaxSegments+1)}},
		"many prefixes":  slices.Repeat([]engine.Resource{{Path: make([]string, engine.MaxSegments)}}, 64),
		"a NUL":          {{Path: []string{"a", "b\x00"}}},
		"no UTF-8":       {{Path: []string{"\xff"}}},
		"too many bytes": deep,
	} {
		if _, err := p.Lock(t.Context(), "ns", "client", 0, resources); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want %q", name, err, fault.Invalid)
		}
	}
	if _, err := p.Lock(t.Context(), "n\x00s", "client", 0, make([]engine.Resource, 1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad namespace: %v", err)
	}
}

func TestClaims_NoticesTheEndOfAClaimWithin50ms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, enginetest.NewStore())
		defer p.stop()
		lockPath(t, p, "b") // held at once, so it never waits
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		<-time.After(300 * time.Millisecond) // so that the end is not that of a round of leaseInterval
		p.Disconnect(t.Context(), first, true)
		end := time.Now().Add(abandon)
		<-second.Held()
		if late := time.Since(end); late < 0 || late > 50*time.Millisecond {
			t.Errorf("woken %s after the end", late)
		}
	})
}

func TestClaims_RefusesNamespacesThatNoStoreKeeps(t *testing.T) {
	t.Parallel()
	c := engine.NewClaims(enginetest.NewStore(), &events{}, slog.New(slog.DiscardHandler))
	for _, namespace := range []string{"a\x00b", "\xff", strings.Repeat("n", engine.MaxNamespace+1)} {
		if err := c.OpenNamespace(t.Context(), namespace); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.20q: got %v, want a fault", namespace, err)
		}
	}
}

// slowStore answers after a time.
type slowStore struct {
	*enginetest.Store
	store             time.Duration // before a claim is stored
	enqueue, withdraw time.Duration
}

func (s *slowStore) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	<-time.After(s.store)
	defer func() { <-time.After(s.enqueue) }()
	return s.Store.Enqueue(ctx, q)
}

func (s *slowStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID,
	error,
) {
	defer func() { <-time.After(s.withdraw) }()
	return s.Store.Withdraw(ctx, caller, namespace, id)
}

func TestClaims_CountsAGrantOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, &slowStore{Store: enginetest.NewStore(), enqueue: 1500 * time.Millisecond})
		lockPath(t, p, "a") // a comparison finds the claim before Enqueue answers
		if got, want := p.kinds(), []engine.EventKind{engine.EventGranted}; !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	})
}

func TestClaims_ComparisonLosesNoClaimThatIsNotStoredYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, &slowStore{Store: enginetest.NewStore(), store: 1500 * time.Millisecond})
		wantTicket(t, "after a comparison", lockPath(t, p, "a"), true, false)
	})
}

func TestClaims_LostTicketIsNeverHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, &slowStore{Store: store, withdraw: time.Millisecond})
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		var releasing sync.WaitGroup
		releasing.Go(func() {
			if err := p.Release(t.Context(), first); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // the store has granted the second claim, and the answer is under way
		claims, err := store.ListClaims(t.Context(), "", 2)
		if err != nil || len(claims) != 1 || !claims[0].Held {
			t.Fatalf("got %+v, %v, want the second claim held", claims, err)
		}
		if err := p.ForceWithdraw(t.Context(), "ns", claims[0].ID, engine.Note{By: "ann", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		releasing.Wait()
		wantTicket(t, "after the late answer", second, false, true)
	})
}

// TestClaims_ComparesManyClaimsInPages has more claims than a page. The claim that is gone,
// and the one that no connection knows, are in any of them.
func TestClaims_ComparesManyClaimsInPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := enginetest.NewStore()
		p := startProcess(t, store)
		tickets := make([]*engine.Ticket, 2*engine.PageSize+1)
		for i := range tickets {
			tickets[i] = lockPath(t, p, strconv.Itoa(i))
		}
		claims, err := store.ListClaims(t.Context(), "", len(tickets))
		if err != nil || len(claims) != len(tickets) {
			t.Fatalf("the store has %d claims, %v", len(claims), err)
		}
		for i, c := range claims {
			if i%100 > 0 {
				continue
			}
			if _, err := store.Withdraw(t.Context(), uuid.New(), "ns", c.ID); err != nil {
				t.Fatal(err)
			}
			c.ID, c.Resources = uuid.New(), []engine.Resource{{Path: []string{"unknown", strconv.Itoa(i)}}}
			if _, err := store.Enqueue(t.Context(), c.Claim); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(3 * time.Second) // a comparison, then a round of ends
		for i, ticket := range tickets {
			if lost := i%100 == 0; isDone(ticket.Lost()) != lost {
				t.Errorf("claim %d is lost: %t, want %t", ticket.Number, !lost, lost)
			}
		}
		wantClaims(t, "without the unknown ones", store, len(tickets)-(len(tickets)+99)/100)
	})
}

func TestClaims_NotifyOfGrantAndLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startProcess(t, enginetest.NewStore())
		first, second := lockPath(t, p, "a"), lockPath(t, p, "a")
		var seen []string // of the second ticket
		p.Notify(second, func() { seen = append(seen, fmt.Sprint(isDone(second.Held()), isDone(second.Lost()))) })
		if err := p.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		claims, err := p.List(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ForceWithdraw(t.Context(), "ns", claims[0].ID, engine.Note{By: "ann", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := []string{"true false", "true true"}; !slices.Equal(seen, want) {
			t.Errorf("held, lost: %q, want %q", seen, want)
		}
	})
}
