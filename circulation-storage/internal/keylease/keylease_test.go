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
	broken error // of Running
}

func (b *busy) Lease(context.Context, keylease.Request) (keylease.Lease, error) {
	b.tries++
	if time.Now().Before(b.until) || b.tries <= b.taken {
		return keylease.Lease{}, keylease.ErrRunning()
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
		"no other caller":           {busy{}, 0, 0, "", 0},
		"another caller, no wait":   {busy{}, time.Second, 0, fault.RequestRunning, 0},
		"another caller that ends":  {busy{}, 300 * time.Millisecond, time.Second, "", 480 * time.Millisecond},
		"another caller that stays": {busy{}, time.Hour, time.Second, fault.RequestRunning, time.Second},
		"others who are quicker":    {busy{taken: 3}, 0, time.Second, "", 200 * time.Millisecond},
		"a database that goes away": {busy{broken: errors.New("down")}, time.Hour, time.Second, fault.Internal, 20 * time.Millisecond},
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
		if _, err := keylease.WaitFor(ctx, store, keylease.Request{Wait: 2 * time.Second}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("that took %s", took)
		}
	})
}
