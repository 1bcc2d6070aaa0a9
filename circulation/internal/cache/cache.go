// Package cache keeps values for a short time, or until a version says that they changed, in a
// bounded number. Callers that want the same value at the same time share one fetch.
package cache

import (
	"context"
	"sync"
	"time"

	"checkoutlock/schemas/fault"
)

// Cache keeps values by key. Values are shared, so no caller may change one. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	// Now is the clock.
	Now func() time.Time
	// Version returns the version of what the key's value is made from, and when the call began that
	// read it. A fetched value counts as fetched then, too, if its version is the same. An empty version,
	// as that of a new cache, confirms no value.
	Version func(key K) (version string, read time.Time)

	age  time.Duration
	size int

	mu      sync.Mutex
	entries map[K]*entry[V]
}

// entry is a value, or a fetch of one that runs until done is closed.
type entry[V any] struct {
	begun   time.Time
	age     time.Duration
	version string // as known when the fetch began
	done    chan struct{}
	value   V
	err     error
}

// maxConfirmed is how long versions keep a value fresh. It bounds the harm of a server that answers
// as if it were still the primary.
const maxConfirmed = time.Minute

// isFresh reports whether the entry of key may still be used. The error of a failed fetch reaches
// only the callers that waited for it.
func (c *Cache[K, V]) isFresh(key K, e *entry[V], now time.Time) bool {
	select {
	case <-e.done:
	default:
		return true
	}
	if e.err != nil {
		return false
	}
	if now.Sub(e.begun) < e.age {
		return true
	}
	version, read := c.Version(key)
	return version != "" && version == e.version && now.Sub(read) < e.age && now.Sub(e.begun) < maxConfirmed
}

// New returns an empty cache of at most size values. A fetched value stays fresh for age, counted
// from the beginning of its fetch: so what a caller sees is at most that old.
func New[K comparable, V any](age time.Duration, size int) *Cache[K, V] {
	none := func(K) (string, time.Time) { return "", time.Time{} }
	return &Cache[K, V]{Now: time.Now, Version: none, age: age, size: size, entries: map[K]*entry[V]{}}
}

// Get returns the value of key and fetches it if there is no fresh one. fetch gets the outdated
// value, or the zero value. It runs without the caller's cancellation, because others may wait for
// it too, so it must end by itself. A caller whose context ends stops waiting.
func (c *Cache[K, V]) Get(ctx context.Context, key K, fetch func(ctx context.Context, old V) (V, error)) (V, error) {
	e, old, added := c.getEntry(key)
	if added {
		go e.fetch(context.WithoutCancel(ctx), old, fetch)
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// fetch fetches the value. After an error, or a panic, it keeps the old one.
func (e *entry[V]) fetch(ctx context.Context, old V, fetch func(ctx context.Context, old V) (V, error)) {
	defer close(e.done)
	defer fault.Recover(&e.err)
	e.value = old
	value, err := fetch(ctx, old)
	if err != nil {
		e.err = err
		return
	}
	e.value = value
}

// getEntry returns the fresh entry of key. It adds one, which the caller has to fetch, if there is
// none.
func (c *Cache[K, V]) getEntry(key K) (e *entry[V], old V, added bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	if e, ok := c.entries[key]; ok {
		if c.isFresh(key, e, now) {
			return e, old, false
		}
		old = e.value
	}
	e = &entry[V]{begun: now, age: c.age, done: make(chan struct{})}
	e.version, _ = c.Version(key)
	c.addEntry(key, e)
	return e, old, true
}

// addEntry sets the entry of key. c.mu is held.
func (c *Cache[K, V]) addEntry(key K, e *entry[V]) {
	if _, known := c.entries[key]; !known && len(c.entries) >= c.size {
		c.makeRoom(e.begun)
	}
	c.entries[key] = e
}

// makeRoom drops the outdated entries, or all of them if none is outdated. c.mu is held.
func (c *Cache[K, V]) makeRoom(now time.Time) {
	for key, e := range c.entries {
		if !c.isFresh(key, e, now) {
			delete(c.entries, key)
		}
	}
	if len(c.entries) >= c.size {
		clear(c.entries)
	}
}

// Peek returns the fresh value of key without a fetch.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peekEntry(key)
}

// peekEntry is Peek while c.mu is held.
func (c *Cache[K, V]) peekEntry(key K) (value V, ok bool) {
	e := c.entries[key]
	if e == nil || !c.isFresh(key, e, c.Now()) {
		return value, false
	}
	select {
	case <-e.done:
		return e.value, true
	default:
		return value, false
	}
}

// Put keeps the value for age.
func (c *Cache[K, V]) Put(key K, value V, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putEntry(key, value, age)
}

// Add is Put, unless the key has a fresh value.
func (c *Cache[K, V]) Add(key K, value V, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.peekEntry(key); !ok {
		c.putEntry(key, value, age)
	}
}

// putEntry is Put while c.mu is held.
func (c *Cache[K, V]) putEntry(key K, value V, age time.Duration) {
	e := &entry[V]{begun: c.Now(), age: age, done: make(chan struct{}), value: value}
	close(e.done)
	c.addEntry(key, e)
}

// Drop removes key. A fetch that is under way still answers the callers that wait for it, and no
// later ones.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// Len counts the values, outdated ones too, for tests.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}
