package admin

import (
	"context"
	"sync"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// FiguresAge is how old Figures may be: however many look, storage is asked once
	// in that time by each instance.
	FiguresAge = 5 * time.Second
	// figuresTimeout bounds one asking; whoever waits for it may leave earlier.
	figuresTimeout = 5 * time.Second
	// maxFigures bounds the figures that are kept, over all tenants and times. Those
	// of a day are some 200 KB.
	maxFigures = 128
	// maxAskings bounds those under way: a caller may name many numbers of minutes.
	maxAskings = 4
)

// Figures returns those of the last minutes, 1 to schemas.MaxFigureMinutes; they
// may be FiguresAge old. Nobody may change what they point at. Fault: Invalid for
// another number.
func (s *Service) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return schemas.Figures{}, err
	}
	a, mine := s.figures.asking(figuresKey{id, minutes})
	if mine {
		// Not the caller's own: it may leave while others wait for the answer.
		go func() {
			defer close(a.done)
			actx, cancel := context.WithTimeout(context.WithoutCancel(ctx), figuresTimeout)
			defer cancel()
			a.figures, a.err = s.figures.inTurn(actx, func() (schemas.Figures, error) { return s.storage.Figures(actx, minutes) })
		}()
	}
	select {
	case <-a.done:
		return a.figures, a.err
	case <-ctx.Done():
		return schemas.Figures{}, ctx.Err()
	}
}

type figuresKey struct {
	tenant  okapi.Tenant
	minutes int
}

// asking is one of storage, under way until done is closed.
type asking struct {
	begun   time.Time
	done    chan struct{}
	figures schemas.Figures
	err     error
}

// fresh tells whether the answer may still be used. One that failed is shared by
// those who waited for it and by nobody else.
func (a *asking) fresh(now time.Time) bool {
	select {
	case <-a.done:
		return a.err == nil && now.Sub(a.begun) < FiguresAge
	default:
		return true
	}
}

// figuresCache keeps figures for FiguresAge.
type figuresCache struct {
	mu      sync.Mutex
	askings map[figuresKey]*asking
	turns   chan struct{}
}

func newFiguresCache() *figuresCache {
	return &figuresCache{askings: map[figuresKey]*asking{}, turns: make(chan struct{}, maxAskings)}
}

// inTurn asks when fewer than maxAskings others do.
func (c *figuresCache) inTurn(ctx context.Context, ask func() (schemas.Figures, error)) (schemas.Figures, error) {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
		return ask()
	case <-ctx.Done():
		return schemas.Figures{}, ctx.Err()
	}
}

// asking returns the one for key, and whether the caller has to make it.
func (c *figuresCache) asking(key figuresKey) (a *asking, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if a, ok := c.askings[key]; ok && a.fresh(now) {
		return a, false
	}
	if len(c.askings) >= maxFigures {
		c.makeRoom(now)
	}
	a = &asking{begun: now, done: make(chan struct{})}
	c.askings[key] = a
	return a, true
}

// makeRoom drops what has grown old, or everything when nothing has.
func (c *figuresCache) makeRoom(now time.Time) {
	for key, a := range c.askings {
		if !a.fresh(now) {
			delete(c.askings, key)
		}
	}
	if len(c.askings) >= maxFigures {
		clear(c.askings)
	}
}
