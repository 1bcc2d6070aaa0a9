package enginetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/convert"
)

const callers = 32

// atOnce runs fn in as many goroutines as there are callers and starts them together.
func atOnce(fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// testOneWinner checks the key that was never locked, that is free, and that has an
// outdated lock.
func testOneWinner(c *lockTest) {
	for _, before := range []string{"never locked", "released", "outdated"} {
		grants := make([]engine.Result, callers)
		atOnce(func(i int) {
			var err error
			grants[i], err = c.store.Acquire(c.ctx, engine.Acquire{Key: draft("d"), Owner: fmt.Sprint("owner ", i), TTL: time.Hour})
			if err != nil {
				c.Errorf("%s: %v", before, err)
			}
		})
		outcomes := map[engine.Outcome]int{}
		expired := 0
		var winner engine.Lock
		for _, g := range grants {
			outcomes[g.Outcome]++
			if g.Expired {
				expired++
			}
			if g.Outcome == engine.Granted {
				winner = g.Lock
			}
		}
		if outcomes[engine.Granted] != 1 || outcomes[engine.Held] != callers-1 {
			c.Fatalf("%s: %v, want one granted and all others held", before, outcomes)
		}
		for i, g := range grants {
			if !reflect.DeepEqual(g.Lock, winner) {
				c.Errorf("%s: owner %d sees %+v, want %+v", before, i, g.Lock, winner)
			}
		}
		if (expired == 1) != (before == "outdated") {
			c.Errorf("%s: %d expiries", before, expired)
		}
		c.wantLock(winner)
		if before == "never locked" {
			c.release("d", winner.Owner, engine.Released)
		} else {
			c.advance(time.Hour)
		}
	}
}

// testManyRenewals renews locks of many owners at once. One owner has released its lock, the
// lock of one is outdated, and another owner has that of a third.
func testManyRenewals(c *lockTest) {
	owner := func(i int) string { return fmt.Sprint("owner ", i) }
	acquire := func(i int, value string, ttl time.Duration) engine.Acquire {
		return engine.Acquire{Key: draft(fmt.Sprint("d", i)), Owner: owner(i), Kind: "k", Value: value, TTL: ttl}
	}
	former := make([]engine.Lock, callers)
	for i := range callers {
		former[i] = c.acquireAs(acquire(i, "former", time.Minute+time.Duration(min(i, 1))*time.Hour), engine.Granted).Lock
	}
	c.advance(time.Minute)
	c.release("d1", owner(1), engine.Released)
	c.release("d2", owner(2), engine.Released)
	c.acquire("d2", "thief", engine.Granted)
	for round := range 3 {
		value, ttl := fmt.Sprint("round ", round), time.Duration(round+1)*time.Hour
		grants := make([]engine.Result, callers)
		atOnce(func(i int) {
			var err error
			if grants[i], err = c.store.Acquire(c.ctx, acquire(i, value, ttl)); err != nil {
				c.Error(err)
			}
		})
		for i, g := range grants {
			want := engine.Renewed
			switch {
			case i == 2:
				want = engine.Held
			case i < 2 && round == 0:
				want = engine.Granted
			}
			l := g.Lock
			if g.Outcome != want || g.Expired != (i == 0 && round == 0) || (want == engine.Granted) == (l.ID == former[i].ID) && i != 2 {
				c.Errorf("round %d: owner %d got %+v after %+v, want %s", round, i, g, former[i], want)
			}
			if want != engine.Held && (l.Key != draft(fmt.Sprint("d", i)) || l.Owner != owner(i) || l.Value != value || l.ExpiresAt != l.RenewedAt.Add(ttl)) {
				c.Errorf("round %d: owner %d got %+v", round, i, l)
			}
			c.wantLock(l)
			former[i] = l
		}
	}
}

func testOneOwner(c *lockTest) {
	for keep, later := range map[bool]engine.Outcome{true: engine.Kept, false: engine.Renewed} {
		name := string(later)
		grants := make([]engine.Result, callers)
		atOnce(func(i int) {
			var err error
			grants[i], err = c.store.Acquire(c.ctx, engine.Acquire{Key: draft(name), Owner: "ann", TTL: time.Hour, Keep: keep})
			if err != nil {
				c.Error(err)
			}
		})
		outcomes := map[engine.Outcome]int{}
		ids := map[uuid.UUID]bool{}
		for _, g := range grants {
			outcomes[g.Outcome]++
			ids[g.Lock.ID] = true
		}
		if outcomes[engine.Granted] != 1 || outcomes[later] != callers-1 || len(ids) != 1 {
			c.Errorf("keep %t: %v with %d ids, want one granted, the others %s, with one id", keep, outcomes, len(ids), later)
		}
	}
}

func testList(c *lockTest) {
	var all []engine.Lock
	for _, key := range []engine.Key{
		{Namespace: "a", Name: ""},
		{Namespace: "a", Name: "B"},
		{Namespace: "a", Name: "a"},
		{Namespace: "a", Name: "ä"},
		{Namespace: "a/x", Name: "a"},
		{Namespace: "ab", Name: "a"},
		{Namespace: "b", Name: "a"},
		{Namespace: "b_", Name: "a"},
	} {
		kind := map[bool]string{true: "even", false: "odd"}[len(all)%2 == 0]
		all = append(all, c.acquireAs(engine.Acquire{Key: key, Owner: "ann", Kind: kind, Value: "v", TTL: time.Hour}, engine.Granted).Lock)
	}
	c.acquireAs(engine.Acquire{Key: engine.Key{Namespace: "a", Name: "released"}, Owner: "ann", TTL: time.Hour}, engine.Granted)
	if _, err := c.store.Release(c.ctx, engine.Key{Namespace: "a", Name: "released"}, "ann"); err != nil {
		c.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter engine.Filter
		want   []int
	}{
		{name: "all", filter: engine.Filter{}, want: []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{name: "a namespace", filter: engine.Filter{Namespace: "a"}, want: []int{0, 1, 2, 3}},
		{name: "another namespace", filter: engine.Filter{Namespace: "A"}, want: nil},
		{name: "a beginning", filter: engine.Filter{Namespace: "a", Prefix: true}, want: []int{0, 1, 2, 3, 4, 5}},
		{name: "a beginning with a sign of LIKE", filter: engine.Filter{Namespace: "b_", Prefix: true}, want: []int{7}},
		{name: "names, one twice", filter: engine.Filter{Namespace: "a", Names: []string{"ä", "a", "none", "a"}}, want: []int{2, 3}},
		{name: "no names", filter: engine.Filter{Names: []string{}}, want: nil},
		{name: "a kind", filter: engine.Filter{Kind: "odd"}, want: []int{1, 3, 5, 7}},
		{name: "a page", filter: engine.Filter{Limit: 3}, want: []int{0, 1, 2}},
		{name: "the next page", filter: engine.Filter{Limit: 3, After: all[2].Key}, want: []int{3, 4, 5}},
		{name: "the last page of a namespace", filter: engine.Filter{Namespace: "a", Limit: 3, After: all[2].Key}, want: []int{3}},
		{name: "everything at once", filter: engine.Filter{Namespace: "a", Prefix: true, Names: []string{"a"}, Kind: "even", After: all[2].Key, Limit: 1}, want: []int{4}},
	} {
		want := convert.All(tt.want, func(i int) engine.Lock { return all[i] })
		if got, err := c.store.List(c.ctx, tt.filter); err != nil || !slices.EqualFunc(got, want, equalLocks) {
			c.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, want)
		}
	}
}

func equalLocks(a, b engine.Lock) bool { return reflect.DeepEqual(a, b) }

func testCount(c *lockTest) {
	for i := range 5 {
		a := engine.Acquire{Key: draft(fmt.Sprint(i)), Owner: "ann", Kind: fmt.Sprint("kind ", i%2), TTL: time.Duration(i+1) * time.Hour}
		c.acquireAs(a, engine.Granted)
	}
	c.acquireAs(engine.Acquire{Key: engine.Key{Namespace: "other"}, Owner: "ann", TTL: 9 * time.Hour}, engine.Granted)
	c.release("4", "ann", engine.Released)
	c.advance(time.Hour) // ends the first
	want := []engine.KindCount{
		{Namespace: "ns", Kind: "kind 0", Locks: 1}, {Namespace: "ns", Kind: "kind 1", Locks: 2}, {Namespace: "other", Locks: 1},
	}
	if got, err := c.store.Count(c.ctx); err != nil || !slices.Equal(got, want) {
		c.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func testSweep(c *lockTest) {
	const n = 25 // more than one call returns
	for i := range n {
		c.acquireAs(engine.Acquire{Key: draft(fmt.Sprint(i)), Owner: "ann", Kind: "k", TTL: time.Hour}, engine.Granted)
	}
	live := c.acquireAs(engine.Acquire{Key: draft("live"), Owner: "ann", TTL: 9 * time.Hour}, engine.Granted).Lock
	c.acquire("released", "ann", engine.Granted)
	c.release("released", "ann", engine.Released)
	c.acquire("replaced", "ann", engine.Granted)
	if got := c.sweep(time.Hour); len(got) != 0 {
		c.Errorf("swept %+v before its end", got)
	}
	c.advance(time.Hour + engine.SweepDelay)
	if g := c.acquire("replaced", "bob", engine.Granted); !g.Expired {
		c.Error("the expiry of a replaced lock is lost")
	}
	seen := map[string]bool{}
	for _, l := range c.sweep(9 * time.Hour) {
		if seen[l.Name] || l.Owner != "ann" || l.Kind != "k" {
			c.Errorf("swept %+v", l)
		}
		seen[l.Name] = true
	}
	if len(seen) != n {
		c.Errorf("swept %d locks, want %d", len(seen), n)
	}
	if g := c.acquire("0", "ann", engine.Granted); g.Expired {
		c.Error("an expiry counts twice")
	}
	if got, err := c.store.Fetch(c.ctx, live.Key); err != nil || got.ID != live.ID {
		c.Errorf("the live lock is %+v, %v", got, err)
	}
}

// testForget looks at what is kept through Refresh, which resumes a lock of any age here.
func testForget(c *lockTest) {
	var last []engine.Lock
	for _, name := range []string{"expired", "released"} {
		last = append(last, c.acquire(name, "ann", engine.Granted).Lock)
	}
	c.release("released", "ann", engine.Released)
	sweep := func() {
		c.sweep(10 * time.Hour)
		c.sweep(10 * time.Hour)
	}
	resume := func(l engine.Lock, want engine.Outcome) {
		r := engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour, ResumeWithin: 1000 * time.Hour}
		c.refresh(r, want)
	}
	c.advance(time.Hour + engine.SweepDelay)
	sweep()
	c.advance(8 * time.Hour)
	sweep()
	kept := c.acquire("kept", "ann", engine.Granted).Lock
	c.release("kept", "ann", engine.Released)
	c.advance(3 * time.Hour)
	sweep()
	for _, l := range last {
		resume(l, engine.UnknownID)
	}
	resume(kept, engine.Granted)
}
