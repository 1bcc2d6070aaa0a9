package enginetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// RunRandomLocks compares random calls with modelLock. Each call uses one of the stores, which
// share their locks. Each sequence has a namespace of its own, and time passes in minutes, so
// that the time that calls take does not matter.
func RunRandomLocks(t *testing.T, stores []engine.LockStore, advance func(time.Duration)) {
	t.Helper()
	c := &lockTest{TB: t, ctx: t.Context(), store: stores[0], advance: advance}
	rapid.Check(t, func(t *rapid.T) {
		m := &locksModel{T: t, c: c, stores: stores, namespace: uuid.NewString(), keys: map[string]*modelLock{}}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": m.acquire, "refresh": m.refresh, "release": m.release, "force": m.force, "sweep": m.sweep,
			"advance": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{7, 13, 27}).Draw(t, "minutes") * time.Minute
				m.now += d
				c.advance(d)
			},
			"": m.compare,
		})
	})
}

// locksModel is what a store must have. It has its own clock.
type locksModel struct {
	*rapid.T
	c         *lockTest
	stores    []engine.LockStore
	namespace string
	now       time.Duration
	keys      map[string]*modelLock
	fence     int64
}

// modelLock is the last lock of a key.
type modelLock struct {
	id      uuid.UUID
	owner   string
	value   string
	until   time.Duration
	ended   bool // by a release
	endedAt time.Duration
	forced  bool
	counted bool // its expiry
}

func (m *locksModel) live(l *modelLock) bool { return l != nil && !l.ended && m.now < l.until }

func (m *locksModel) uncounted(l *modelLock) bool {
	return l != nil && !l.ended && !l.counted && m.now >= l.until
}

func (m *locksModel) draw(t *rapid.T) (name, owner string, ttl time.Duration) {
	return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
		rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"),
		rapid.SampledFrom([]time.Duration{10, 20, 40}).Draw(t, "ttl") * time.Minute
}

func (m *locksModel) drawStore(t *rapid.T) engine.LockStore {
	return rapid.SampledFrom(m.stores).Draw(t, "store")
}

func (m *locksModel) key(name string) engine.Key {
	return engine.Key{Namespace: m.namespace, Name: name}
}

func (m *locksModel) acquire(t *rapid.T) {
	name, owner, ttl := m.draw(t)
	value := strconv.Itoa(rapid.IntRange(0, 99).Draw(t, "value"))
	keep := rapid.Bool().Draw(t, "keep")
	l := m.keys[name]
	want, expired := engine.Granted, m.uncounted(l)
	switch {
	case m.live(l) && l.owner != owner:
		want = engine.Held
	case m.live(l) && keep:
		want = engine.Kept
	case m.live(l):
		want = engine.Renewed
	}
	g, err := m.drawStore(t).Acquire(m.c.ctx, engine.Acquire{Key: m.key(name), Owner: owner, Value: value, TTL: ttl, Keep: keep})
	if err != nil || g.Outcome != want || g.Expired != expired {
		t.Fatalf("got %+v, %v, want %s, expired %t", g, err, want, expired)
	}
	switch want { //nolint:exhaustive // the others change nothing
	case engine.Granted:
		m.grant(t, name, g.Lock, ttl, value)
	case engine.Renewed:
		l.until, l.value = m.now+ttl, value
	}
}

func (m *locksModel) grant(t *rapid.T, name string, got engine.Lock, ttl time.Duration, value string) {
	if got.Fence <= m.fence {
		t.Fatalf("fence %d after %d", got.Fence, m.fence)
	}
	m.fence = got.Fence
	m.keys[name] = &modelLock{id: got.ID, owner: got.Owner, value: value, until: m.now + ttl}
}

func (m *locksModel) refresh(t *rapid.T) {
	name, owner, ttl := m.draw(t)
	within := rapid.SampledFrom([]time.Duration{0, 15, 60}).Draw(t, "within") * time.Minute
	l := m.keys[name]
	id := uuid.New()
	if l != nil && rapid.Bool().Draw(t, "its id") {
		id = l.id
	}
	want, expired := engine.UnknownID, false
	switch {
	case l == nil || l.id != id || l.forced:
	case m.live(l) && l.owner != owner:
		want = engine.Held
	case m.live(l):
		want = engine.Renewed
	default:
		end := l.until
		if l.ended {
			end = l.endedAt
		}
		if l.owner == owner && m.now-end < within {
			want, expired = engine.Granted, m.uncounted(l)
		}
	}
	r, err := m.drawStore(t).Refresh(m.c.ctx, engine.Refresh{Key: m.key(name), ID: id, Owner: owner, TTL: ttl, ResumeWithin: within})
	if err != nil || r.Outcome != want || r.Expired != expired {
		t.Fatalf("got %+v, %v, want %s, expired %t", r, err, want, expired)
	}
	switch want {
	case engine.Renewed:
		l.until = m.now + ttl
	case engine.Granted:
		m.grant(t, name, r.Lock, ttl, l.value)
	case engine.Held, engine.UnknownID, engine.Kept, engine.Released, engine.Free:
	}
}

func (m *locksModel) release(t *rapid.T) {
	name, owner, _ := m.draw(t)
	l := m.keys[name]
	want := engine.Free
	switch {
	case m.live(l) && l.owner != owner:
		want = engine.Held
	case m.live(l):
		want = engine.Released
	}
	if got, err := m.drawStore(t).Release(m.c.ctx, m.key(name), owner); err != nil || got.Outcome != want {
		t.Fatalf("got %s, %v, want %s", got.Outcome, err, want)
	}
	if want == engine.Released {
		l.ended, l.endedAt = true, m.now
	}
}

func (m *locksModel) force(t *rapid.T) {
	name, _, _ := m.draw(t)
	l := m.keys[name]
	if l == nil {
		return
	}
	_, err := m.drawStore(t).ForceRelease(m.c.ctx, m.key(name), l.id, engine.Note{By: "eve", Reason: "test"})
	if m.live(l) && err != nil || !m.live(l) && !fault.Is(err, fault.NotFound) {
		t.Fatalf("live %t: %v", m.live(l), err)
	}
	if m.live(l) {
		l.ended, l.endedAt, l.forced = true, m.now, true
	}
}

// sweep forgets nothing, and may find an expiry late.
func (m *locksModel) sweep(t *rapid.T) {
	swept := map[string]bool{}
	for _, l := range m.c.sweep(1000 * time.Hour) {
		if l.Namespace == m.namespace {
			swept[l.Name] = true
		}
	}
	for name, l := range m.keys {
		late := m.uncounted(l) && m.now >= l.until+engine.SweepDelay
		if swept[name] && !m.uncounted(l) || !swept[name] && late {
			t.Fatalf("%q: swept %t, uncounted %t", name, swept[name], m.uncounted(l))
		}
		l.counted = l.counted || swept[name]
	}
}

func (m *locksModel) compare(t *rapid.T) {
	locks, err := m.drawStore(t).List(m.c.ctx, engine.Filter{Namespace: m.namespace})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, got := range locks {
		l := m.keys[got.Name]
		if !m.live(l) || got.ID != l.id || got.Owner != l.owner || got.Value != l.value {
			t.Fatalf("the store has %+v, the model %+v", got, l)
		}
		seen[got.Name] = true
	}
	for name, l := range m.keys {
		if m.live(l) && !seen[name] {
			t.Fatalf("the store lacks %q: %+v", name, l)
		}
	}
}
