package keylease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/schemas/fault"
)

// busy is a key that another caller has until a given time, and longer if taken is set.
type busy struct {
	keylease.Store
	until  time.Time
	taken  int // by others, at so many tries
	looks  int
	tries  int
	broken error
}

func (b *busy) Lease(context.Context, keylease.Request) (keylease.Lease, error) {
	b.tries++
	if time.Now().Before(b.until) || b.tries <= b.taken {
		return keylease.Lease{}, keylease.ErrRunning()
	}
	if b.broken != nil {
		return keylease.Lease{}, b.broken
	}
	return keylease.Lease{LoanID: uuid.Max}, nil
}

func (b *busy) Running(context.Context, keylease.Request) (bool, error) {
	b.looks++
	return time.Now().Before(b.until), b.broken
}

func TestWaitFor_WaitsForTheHolder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		store busy
		work  time.Duration // of the other caller
		wait  time.Duration
		code  fault.Code // "" is leased
		took  time.Duration
	}{
		"no other caller":         {store: busy{}, work: 0, wait: 0, code: "", took: 0},
		"another caller, no wait": {store: busy{}, work: time.Second, wait: 0, code: fault.RequestRunning, took: 0},
		"another caller that ends": {
			store: busy{}, work: 300 * time.Millisecond, wait: time.Second, code: "", took: 480 * time.Millisecond,
		},
		"another caller that stays": {
			store: busy{}, work: time.Hour, wait: time.Second, code: fault.RequestRunning, took: time.Second,
		},
		"others who are quicker": {
			store: busy{taken: 3}, work: 0, wait: time.Second, code: "", took: 200 * time.Millisecond,
		},
		"a database that is away": {
			store: busy{broken: errors.New("down")}, work: 0, wait: time.Second, code: fault.Internal, took: 0,
		},
		"a database that goes away": {
			store: busy{broken: errors.New("down")}, work: time.Hour, wait: time.Second, code: fault.Internal,
			took: 20 * time.Millisecond,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				tt.store.until = began.Add(tt.work)
				c, err := keylease.WaitFor(t.Context(), &tt.store, keylease.Request{Wait: tt.wait})
				if fault.CodeOf(err) != tt.code || (c.LoanID == uuid.Max) != (err == nil) {
					t.Errorf("got %+v, %v, want %q", c, err, tt.code)
				}
				if took := time.Since(began); took > tt.took {
					t.Errorf("that took %s, want at most %s", took, tt.took)
				}
				if tt.store.looks > 20 {
					t.Errorf("looked %d times", tt.store.looks)
				}
			})
		})
	}
}

func TestWaitFor_EndsWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &busy{until: time.Now().Add(time.Hour)}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, leave)
		began := time.Now()
		if _, err := keylease.WaitFor(ctx, store, keylease.Request{Wait: 2 * time.Second}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("that took %s", took)
		}
	})
}
