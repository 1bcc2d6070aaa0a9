package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

// pagedStore notes the largest list that was read.
type pagedStore struct {
	*enginetest.Store
	largest int
}

func (s *pagedStore) List(ctx context.Context, f engine.Filter) ([]engine.Lock, error) {
	locks, err := s.Store.List(ctx, f)
	s.largest = max(s.largest, len(locks))
	return locks, err
}

func TestLocks_WalkReadsPages(t *testing.T) {
	t.Parallel()
	store := &pagedStore{Store: enginetest.NewStore()}
	locks := engine.NewLocks(store, &events{})
	const all = 2*engine.WalkPage + 1
	var names []string
	for i := range all {
		names = append(names, strconv.Itoa(i))
		key := engine.Key{Namespace: []string{"a", "b"}[i%2], Name: names[i]}
		if _, err := locks.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		filter engine.Filter
		want   int
	}{
		"all":              {want: all},
		"a namespace":      {filter: engine.Filter{Namespace: "b"}, want: engine.WalkPage},
		"names":            {filter: engine.Filter{Names: names}, want: all},
		"no names":         {filter: engine.Filter{Names: []string{}}},
		"of another space": {filter: engine.Filter{Namespace: "c"}},
	} {
		seen, visited := map[engine.Key]bool{}, 0
		err := locks.Walk(t.Context(), tt.filter, func(l engine.Lock) error {
			seen[l.Key] = true
			visited++
			return nil
		})
		if err != nil || len(seen) != tt.want || visited != tt.want {
			t.Errorf("%s: visited %d with %d visits, %v, want %d", name, len(seen), visited, err, tt.want)
		}
	}
	if store.largest > engine.WalkPage {
		t.Errorf("read %d at once", store.largest)
	}
	for _, filter := range []engine.Filter{{}, {Names: names}} {
		stop, visited := errors.New("enough"), 0
		err := locks.Walk(t.Context(), filter, func(engine.Lock) error {
			visited++
			return stop
		})
		if !errors.Is(err, stop) || visited != 1 {
			t.Errorf("visited %d, %v, want an end at the first error", visited, err)
		}
	}
}

func TestLocks_ReportEvents(t *testing.T) {
	t.Parallel()
	store, seen := enginetest.NewStore(), &events{}
	locks := engine.NewLocks(store, seen)
	key := engine.Key{Namespace: "ns", Name: "draft"}
	acquire := func(owner string) engine.Lock {
		t.Helper()
		g, err := locks.Acquire(t.Context(), engine.Acquire{Key: key, Owner: owner, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return g.Lock
	}
	refresh := func(l engine.Lock, owner string) {
		t.Helper()
		r := engine.Refresh{Key: key, ID: l.ID, Owner: owner, TTL: time.Minute, ResumeWithin: time.Hour}
		if _, err := locks.Refresh(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want []engine.EventKind
	}{
		{name: "a free key", do: func() { acquire("ann") }, want: []engine.EventKind{engine.EventGranted}},
		{name: "by its owner", do: func() { acquire("ann") }, want: []engine.EventKind{engine.EventRenewed}},
		{name: "by another", do: func() { acquire("bob") }, want: []engine.EventKind{engine.EventRefused}},
		{name: "refreshes", do: func() {
			l := acquire("ann")
			refresh(l, "ann")
			refresh(l, "bob")
		}, want: []engine.EventKind{engine.EventRenewed, engine.EventRenewed, engine.EventRefused}},
		{name: "outdated", do: func() {
			store.Advance(time.Hour)
			acquire("bob")
		}, want: []engine.EventKind{engine.EventExpired, engine.EventGranted}},
		{name: "resumed", do: func() {
			l := acquire("bob")
			store.Advance(2 * time.Minute)
			refresh(l, "bob")
		}, want: []engine.EventKind{engine.EventRenewed, engine.EventExpired, engine.EventGranted}},
		{name: "asked for", do: func() {
			if _, err := locks.Ask(t.Context(), key, engine.AskedFor{By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}, want: []engine.EventKind{engine.EventRequested}},
		{name: "released twice", do: func() {
			for range 2 {
				if _, err := locks.Release(t.Context(), key, "bob"); err != nil {
					t.Fatal(err)
				}
			}
		}, want: []engine.EventKind{engine.EventReleased}},
		{name: "forced", do: func() {
			if _, err := locks.ForceRelease(t.Context(), key, acquire("ann").ID,
				engine.Note{By: "eve", Reason: "stuck"}); err != nil {
				t.Fatal(err)
			}
		}, want: []engine.EventKind{engine.EventGranted, engine.EventForced}},
		{name: "swept", do: func() {
			acquire("ann")
			store.Advance(time.Hour)
			if _, err := locks.Sweep(t.Context(), time.Hour, 10); err != nil {
				t.Fatal(err)
			}
		}, want: []engine.EventKind{engine.EventGranted, engine.EventExpired}},
	} {
		step.do()
		if got := seen.kinds(); !slices.Equal(got, step.want) {
			t.Errorf("%s: events %v, want %v", step.name, got, step.want)
		}
	}
}

func TestLocks_RefuseWhatNoStoreKeeps(t *testing.T) {
	t.Parallel()
	store := enginetest.NewStore()
	locks := engine.NewLocks(store, &events{})
	good := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "draft"}, Owner: "ann", TTL: time.Minute}
	for name, spoil := range map[string]func(*engine.Acquire){
		"no namespace":           func(a *engine.Acquire) { a.Namespace = "" },
		"a NUL in the namespace": func(a *engine.Acquire) { a.Namespace = "a\x00" },
		"a long name":            func(a *engine.Acquire) { a.Name = strings.Repeat("ä", engine.MaxName+1) },
		"a name that is no text": func(a *engine.Acquire) { a.Name = "\xff" },
		"no owner":               func(a *engine.Acquire) { a.Owner = "" },
		"a long owner":           func(a *engine.Acquire) { a.Owner = strings.Repeat("ä", engine.MaxName+1) },
		"a long kind":            func(a *engine.Acquire) { a.Kind = strings.Repeat("ä", engine.MaxName+1) },
		"a long value":           func(a *engine.Acquire) { a.Value = strings.Repeat("ä", engine.MaxValue/2+1) },
		"a NUL in the value":     func(a *engine.Acquire) { a.Value = "a\x00" },
		"no TTL":                 func(a *engine.Acquire) { a.TTL = 0 },
	} {
		bad := good
		spoil(&bad)
		if _, err := locks.Acquire(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want %q", name, err, fault.Invalid)
		}
	}
	if all, err := store.List(t.Context(), engine.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("stored %+v, %v", all, err)
	}
	long := good
	long.Name, long.TTL = strings.Repeat("ä", engine.MaxName), 1<<63-1
	g, err := locks.Acquire(t.Context(), long)
	if err != nil || g.Lock.ExpiresAt.Sub(g.Lock.GrantedAt) != engine.MaxTTL {
		t.Errorf("the longest name and TTL: %+v, %v", g, err)
	}
	if _, err := locks.Fetch(t.Context(), engine.Key{Namespace: "ns", Name: "\xff"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Fetch of a name that is no text: %v", err)
	}
	if _, err := locks.List(t.Context(), engine.Filter{Names: []string{"a", "\x00"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("List of a name that is no text: %v", err)
	}
}

// countingStore counts how often it counts. It does not answer before goOn is closed.
type countingStore struct {
	engine.LockStore
	counts atomic.Int64
	goOn   chan struct{}
}

func (s *countingStore) Count(ctx context.Context) ([]engine.KindCount, error) {
	s.counts.Add(1)
	select {
	case <-s.goOn:
		return s.LockStore.Count(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestLocks_CountOnceForAScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{LockStore: enginetest.NewStore(), goOn: make(chan struct{})}
		locks := engine.NewLocks(store, &events{})
		scrape := func(wait func(), want error) {
			t.Helper()
			before := store.counts.Load()
			var collectors sync.WaitGroup
			for range 5 {
				collectors.Go(func() {
					if _, err := locks.Count(t.Context()); !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				})
			}
			synctest.Wait()
			wait()
			collectors.Wait()
			if n := store.counts.Load() - before; n != 1 {
				t.Errorf("a scrape counts %d times", n)
			}
		}
		began := time.Now()
		scrape(func() {}, context.DeadlineExceeded)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("a scrape waited for %s", d)
		}
		scrape(func() { close(store.goOn) }, nil)
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
