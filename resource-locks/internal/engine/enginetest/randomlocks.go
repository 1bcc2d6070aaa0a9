package enginetest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// RunRandomLocks makes the same random calls on the stores and on a Store in memory, and compares
// how they end. Each call uses one of the stores, which share their locks. Each sequence has a
// namespace of its own, and time passes in minutes, so that the time that calls take does not matter.
func RunRandomLocks(t *testing.T, stores []engine.LockStore, advance func(time.Duration)) {
	t.Helper()
	c := &lockTest{TB: t, ctx: t.Context(), store: stores[0], advance: advance}
	rapid.Check(t, func(t *rapid.T) {
		r := &randomLocks{c: c, stores: stores, namespace: uuid.NewString(), memory: NewStore()}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": r.acquire, "refresh": r.refresh, "release": r.release, "force": r.force, "sweep": r.sweep,
			"advance": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{7, 13, 27}).Draw(t, "minutes") * time.Minute
				r.memory.Advance(d)
				c.advance(d)
			},
			"": r.compare,
		})
	})
}

// randomLocks is one sequence of calls.
type randomLocks struct {
	c         *lockTest
	stores    []engine.LockStore
	namespace string
	memory    *Store // has what the stores must have
	fence     int64
}

func (r *randomLocks) draw(t *rapid.T) (key engine.Key, owner string, ttl time.Duration) {
	key = engine.Key{Namespace: r.namespace, Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")}
	return key, rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"),
		rapid.SampledFrom([]time.Duration{10, 20, 40}).Draw(t, "ttl") * time.Minute
}

func (r *randomLocks) drawStore(t *rapid.T) engine.LockStore {
	return rapid.SampledFrom(r.stores).Draw(t, "store")
}

// judge compares the result of a store with that in memory, where a new lock gets the store's id.
func (r *randomLocks) judge(t *rapid.T, got engine.Result, err error, want engine.Result) {
	if err != nil || got.Outcome != want.Outcome || got.Expired != want.Expired {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if got.Outcome == engine.Granted {
		if got.Lock.Fence <= r.fence {
			t.Fatalf("fence %d after %d", got.Lock.Fence, r.fence)
		}
		r.fence = got.Lock.Fence
		r.memory.locks[want.Lock.Key].lock.ID = got.Lock.ID
	}
}

func (r *randomLocks) acquire(t *rapid.T) {
	key, owner, ttl := r.draw(t)
	value := strconv.Itoa(rapid.IntRange(0, 99).Draw(t, "value"))
	a := engine.Acquire{Key: key, Owner: owner, Value: value, TTL: ttl, Keep: rapid.Bool().Draw(t, "keep")}
	want, _ := r.memory.Acquire(r.c.ctx, a) // it never fails
	got, err := r.drawStore(t).Acquire(r.c.ctx, a)
	r.judge(t, got, err, want)
}

func (r *randomLocks) refresh(t *rapid.T) {
	key, owner, ttl := r.draw(t)
	within := rapid.SampledFrom([]time.Duration{0, 15, 60}).Draw(t, "within") * time.Minute
	q := engine.Refresh{Key: key, ID: uuid.New(), Owner: owner, TTL: ttl, ResumeWithin: within}
	if last := r.memory.locks[key]; last != nil && rapid.Bool().Draw(t, "its id") {
		q.ID = last.lock.ID
	}
	want, _ := r.memory.Refresh(r.c.ctx, q)
	got, err := r.drawStore(t).Refresh(r.c.ctx, q)
	r.judge(t, got, err, want)
}

func (r *randomLocks) release(t *rapid.T) {
	key, owner, _ := r.draw(t)
	want, _ := r.memory.Release(r.c.ctx, key, owner)
	got, err := r.drawStore(t).Release(r.c.ctx, key, owner)
	r.judge(t, got, err, want)
}

func (r *randomLocks) force(t *rapid.T) {
	key, _, _ := r.draw(t)
	last := r.memory.locks[key]
	if last == nil {
		return
	}
	note := engine.Note{By: "eve", Reason: "test"}
	_, want := r.memory.ForceRelease(r.c.ctx, key, last.lock.ID, note)
	_, err := r.drawStore(t).ForceRelease(r.c.ctx, key, last.lock.ID, note)
	if err != nil && !fault.Is(err, fault.NotFound) || (err == nil) != (want == nil) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// sweep forgets nothing, and may find an expiry late.
func (r *randomLocks) sweep(t *rapid.T) {
	swept := map[engine.Key]bool{}
	for _, l := range r.c.sweep(1000 * time.Hour) {
		swept[l.Key] = true
	}
	now := r.memory.now()
	for key, last := range r.memory.locks {
		uncounted, late := last.expiredUncounted(now), last.expiredUncounted(now.Add(-engine.SweepDelay))
		if swept[key] && !uncounted || !swept[key] && late {
			t.Fatalf("%q: swept %t, uncounted %t", key.Name, swept[key], uncounted)
		}
		if swept[key] {
			last.endedAt = last.lock.ExpiresAt
		}
	}
}

func (r *randomLocks) compare(t *rapid.T) {
	filter := engine.Filter{Namespace: r.namespace}
	want, _ := r.memory.List(r.c.ctx, filter)
	got, err := r.drawStore(t).List(r.c.ctx, filter)
	if err != nil || !slices.EqualFunc(got, want, func(a, b engine.Lock) bool {
		return a.Key == b.Key && a.ID == b.ID && a.Owner == b.Owner && a.Value == b.Value
	}) {
		t.Fatalf("the store has %+v, %v, want %+v", got, err, want)
	}
}
