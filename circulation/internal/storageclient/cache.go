package storageclient

import (
	"context"
	"sync"
	"time"
)

const (
	// cacheAge is how old a reference record may be. Counted from the beginning
	// of its fetch, so that what one sees is at most so far behind.
	cacheAge = time.Second
	// cacheSize bounds the number of records kept, over all tenants.
	cacheSize = 4096
)

// cacheKey names a record.
type cacheKey struct{ tenant, path string }

// cacheEntry is a fetch, under way until done is closed.
type cacheEntry struct {
	begun time.Time
	done  chan struct{}
	value any
	err   error
}

// fresh tells whether the entry may still be used. One that failed is shared by
// those who waited for it and by nobody else.
func (e *cacheEntry) fresh(now time.Time) bool {
	select {
	case <-e.done:
		return e.err == nil && now.Sub(e.begun) < cacheAge
	default:
		return true
	}
}

// cache keeps reference records for a second. Callers that want the same one at
// the same time share one fetch. Values are shared: nobody may change them.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*cacheEntry
}

func newCache() *cache { return &cache{entries: map[cacheKey]*cacheEntry{}} }

// get returns the value for key. fetch is given the value that has grown old, or
// nil; it runs without the caller's cancellation, because others may wait for it
// too, so it must end by itself. A caller whose context ends stops waiting.
func (c *cache) get(ctx context.Context, key cacheKey, fetch func(ctx context.Context, old any) (any, error)) (any, error) {
	e, old, mine := c.entry(key)
	if mine {
		go func() {
			defer close(e.done)
			if e.value, e.err = fetch(context.WithoutCancel(ctx), old); e.err != nil {
				e.value = old
			}
		}()
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// entry returns the entry for key, and whether the caller has to fetch it.
func (c *cache) entry(key cacheKey) (e *cacheEntry, old any, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if e, ok := c.entries[key]; ok {
		if e.fresh(now) {
			return e, nil, false
		}
		old = e.value
	} else if len(c.entries) >= cacheSize {
		c.makeRoom(now)
	}
	e = &cacheEntry{begun: now, done: make(chan struct{})}
	c.entries[key] = e
	return e, old, true
}

// makeRoom drops what has grown old, or everything when nothing has.
func (c *cache) makeRoom(now time.Time) {
	for key, e := range c.entries {
		if !e.fresh(now) {
			delete(c.entries, key)
		}
	}
	if len(c.entries) >= cacheSize {
		clear(c.entries)
	}
}

// drop forgets key. A fetch under way still answers those who wait for it, and
// nobody after them.
func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
