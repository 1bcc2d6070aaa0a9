package enginetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// NewLockStore returns an empty store of a test, and a function that makes time pass in
// it.
type NewLockStore func(t *testing.T) (store engine.LockStore, advance func(time.Duration))

// RunLockStore runs the contract of engine.LockStore. It calls newStore for each case.
func RunLockStore(t *testing.T, newStore NewLockStore) {
	t.Helper()
	for name, test := range map[string]func(*lockTest){
		"Acquire/a lock shows what was asked for":   testWholeLock,
		"Acquire/the owner renews":                  testRenewal,
		"Acquire/the owner keeps":                   testKeep,
		"Acquire/another owner is refused":          testRefusal,
		"Acquire/an outdated lock equals no lock":   testOutdated,
		"Acquire/names are compared exactly":        testExactNames,
		"Acquire/one winner of many owners":         testOneWinner,
		"Acquire/one owner many times":              testOneOwner,
		"Acquire/many owners renew at once":         testManyRenewals,
		"Acquire/nothing for one who left before":   testLeftBefore,
		"Acquire/the fence grows with each grant":   testFence,
		"Refresh/by id and owner":                   testRefresh,
		"Refresh/resumes the last lock":             testResume,
		"Refresh/amends the value at a resume only": testAmend,
		"Refresh/resume or another owner, not both": testResumeRace,
		"Release/by the owner only":                 testRelease,
		"Release/ends a lock once":                  testReleaseRace,
		"ForceRelease/keeps the note":               testForceRelease,
		"Ask/stores requests until the next grant":  testAsk,
		"List/filters and pages":                    testList,
		"Count/by namespace and kind":               testCount,
		"Sweep/counts each expiry once":             testSweep,
		"Sweep/forgets what ended long ago":         testForget,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, advance := newStore(t)
			test(&lockTest{TB: t, ctx: t.Context(), store: store, advance: advance})
		})
	}
}

// lockTest is one case. Its methods end the test at an error.
type lockTest struct {
	testing.TB
	ctx     context.Context //nolint:containedctx // of the test
	store   engine.LockStore
	advance func(time.Duration)
}

func draft(name string) engine.Key { return engine.Key{Namespace: "ns", Name: name} }

// acquire acquires for an hour and checks the outcome.
func (c *lockTest) acquire(name, owner string, want engine.Outcome) engine.Result {
	c.Helper()
	return c.acquireAs(engine.Acquire{Key: draft(name), Owner: owner, TTL: time.Hour}, want)
}

func (c *lockTest) acquireAs(a engine.Acquire, want engine.Outcome) engine.Result {
	c.Helper()
	g, err := c.store.Acquire(c.ctx, a)
	if err != nil || g.Outcome != want {
		c.Fatalf("Acquire(%+v) = %+v, %v, want %s", a, g, err, want)
	}
	return g
}

func (c *lockTest) release(name, owner string, want engine.Outcome) engine.Lock {
	c.Helper()
	r, err := c.store.Release(c.ctx, draft(name), owner)
	if err != nil || r.Outcome != want {
		c.Fatalf("Release(%s, %s) = %+v, %v, want %s", name, owner, r, err, want)
	}
	return r.Lock
}

func (c *lockTest) refresh(r engine.Refresh, want engine.Outcome) engine.Result {
	c.Helper()
	renewal, err := c.store.Refresh(c.ctx, r)
	if err != nil || renewal.Outcome != want {
		c.Fatalf("Refresh(%+v) = %+v, %v, want %s", r, renewal, err, want)
	}
	return renewal
}

// wantLock checks that want is stored exactly as it is.
func (c *lockTest) wantLock(want engine.Lock) {
	c.Helper()
	if got, err := c.store.Fetch(c.ctx, want.Key); err != nil || !reflect.DeepEqual(got, want) {
		c.Errorf("Fetch = %+v, %v, want %+v", got, err, want)
	}
}

// wantFree checks that no lock of the draft d is to be seen.
func (c *lockTest) wantFree() {
	c.Helper()
	if got, err := c.store.Fetch(c.ctx, draft("d")); !fault.Is(err, fault.NotFound) {
		c.Errorf("Fetch = %+v, %v, want %q", got, err, fault.NotFound)
	}
	if got, err := c.store.List(c.ctx, engine.Filter{Namespace: "ns", Names: []string{"d"}}); err != nil || len(got) != 0 {
		c.Errorf("List = %+v, %v, want nothing", got, err)
	}
}

func testWholeLock(c *lockTest) {
	a := engine.Acquire{Key: draft("d"), Owner: "ann", Kind: "presence", Value: `{"a":"ä"}`, TTL: 90 * time.Second}
	got := c.acquireAs(a, engine.Granted)
	l := got.Lock
	want := engine.Lock{
		Key: a.Key, ID: l.ID, Fence: l.Fence, Owner: "ann", Kind: a.Kind, Value: a.Value,
		GrantedAt: l.GrantedAt, RenewedAt: l.GrantedAt, ExpiresAt: l.GrantedAt.Add(a.TTL),
	}
	if !reflect.DeepEqual(l, want) || l.ID == uuid.Nil || l.Fence < 1 || got.Expired || l.GrantedAt.Location() != time.UTC {
		c.Errorf("got %+v, want %+v", got, want)
	}
	c.wantLock(want)
}

func testRenewal(c *lockTest) {
	before := c.acquire("d", "ann", engine.Granted).Lock
	if _, err := c.store.Ask(c.ctx, before.Key, engine.AskedFor{By: "bob"}); err != nil {
		c.Fatal(err)
	}
	for _, ttl := range []time.Duration{2 * time.Hour, time.Minute} {
		c.advance(time.Second)
		got := c.acquireAs(engine.Acquire{Key: draft("d"), Owner: "ann", Kind: "k", Value: "v", TTL: ttl}, engine.Renewed).Lock
		want := before
		want.Kind, want.Value, want.Requests, want.GrantedAt = "k", "v", got.Requests, got.GrantedAt
		want.RenewedAt, want.ExpiresAt = got.RenewedAt, got.RenewedAt.Add(ttl)
		if !reflect.DeepEqual(got, want) || got.RenewedAt.Sub(got.GrantedAt) < time.Second || len(got.Requests) != 1 {
			c.Errorf("got %+v, want %+v with one request", got, want)
		}
		c.wantLock(got)
	}
}

func testKeep(c *lockTest) {
	keep := engine.Acquire{Key: draft("d"), Owner: "ann", Kind: "k", Value: "v", TTL: time.Hour, Keep: true}
	l := c.acquireAs(keep, engine.Granted).Lock
	other := keep
	other.Kind, other.Value, other.TTL = "other", "other", time.Minute
	if got := c.acquireAs(other, engine.Kept).Lock; !reflect.DeepEqual(got, l) {
		c.Errorf("kept %+v, want %+v", got, l)
	}
	c.wantLock(l)
	other.Owner = "bob"
	c.acquireAs(other, engine.Held)
}

func testRefusal(c *lockTest) {
	l := c.acquire("d", "ann", engine.Granted).Lock
	other := engine.Acquire{Key: draft("d"), Owner: "bob", Kind: "other", Value: "other", TTL: time.Minute}
	if got := c.acquireAs(other, engine.Held).Lock; !reflect.DeepEqual(got, l) {
		c.Errorf("refused with %+v, want %+v", got, l)
	}
	c.wantLock(l)
	c.release("d", "ann", engine.Released)
	c.acquireAs(other, engine.Granted)
}

func testOutdated(c *lockTest) {
	former := c.acquire("d", "ann", engine.Granted).Lock
	c.advance(59 * time.Minute)
	c.acquire("d", "bob", engine.Held)
	c.advance(time.Minute)
	c.wantFree()
	c.release("d", "ann", engine.Free)
	got := c.acquire("d", "bob", engine.Granted)
	if !got.Expired || got.Lock.ID == former.ID || got.Lock.Fence <= former.Fence {
		c.Errorf("got %+v after %+v, want another id, a greater fence and the expiry", got, former)
	}
	c.acquire("d", "ann", engine.Held)
	c.release("d", "ann", engine.Held)
	c.advance(time.Hour)
	if own := c.acquire("d", "bob", engine.Granted); !own.Expired || own.Lock.ID == got.Lock.ID {
		c.Errorf("the former owner got %+v, want a new lock", own)
	}
	c.release("d", "bob", engine.Released)
	if next := c.acquire("d", "ann", engine.Granted); next.Expired {
		c.Errorf("a released lock counts as expired: %+v", next)
	}
}

func testExactNames(c *lockTest) {
	names := []string{"", " ", "a", "A", "a ", "ä", "a\u0308", "日本", "a/b", "%", "a%", `a\`, "'", "𝕏"}
	seen := map[uuid.UUID]bool{}
	for _, namespace := range []string{"ns", "NS", "ns "} {
		for _, name := range names {
			key := engine.Key{Namespace: namespace, Name: name}
			l := c.acquireAs(engine.Acquire{Key: key, Owner: name + "!", TTL: time.Hour}, engine.Granted).Lock
			seen[l.ID] = true
			c.wantLock(l)
		}
	}
	if len(seen) != 3*len(names) {
		c.Errorf("%d locks, want %d", len(seen), 3*len(names))
	}
	if r, err := c.store.Release(c.ctx, draft("a"), "A!"); err != nil || r.Outcome != engine.Held {
		c.Errorf("an owner in another case: %s, %v", r.Outcome, err)
	}
}

func testLeftBefore(c *lockTest) {
	left, leave := context.WithCancel(c.ctx)
	leave()
	if g, err := c.store.Acquire(left, engine.Acquire{Key: draft("d"), Owner: "ann", TTL: time.Hour}); err == nil {
		c.Errorf("got %+v for a cancelled context", g)
	}
	c.wantFree()
}

func testFence(c *lockTest) {
	last := int64(0)
	for round := range 3 {
		for _, end := range []func(){
			func() { c.release("d", "ann", engine.Released) },
			func() { c.advance(2 * time.Hour) },
			func() {
				c.advance(2 * time.Hour)
				c.sweep(time.Minute)
				c.advance(2 * time.Hour)
				c.sweep(time.Minute)
			},
		} {
			fence := c.acquire("d", "ann", engine.Granted).Lock.Fence
			if fence <= last {
				c.Errorf("round %d: fence %d after %d", round, fence, last)
			}
			last = fence
			end()
		}
	}
}

// sweep sweeps until nothing is left, and returns the expired locks.
func (c *lockTest) sweep(keep time.Duration) []engine.Lock {
	c.Helper()
	var all []engine.Lock
	for {
		expired, err := c.store.Sweep(c.ctx, keep, 10)
		if err != nil {
			c.Fatal(err)
		}
		if len(expired) == 0 {
			return all
		}
		all = append(all, expired...)
	}
}
