package claim_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/schemas/fault"
)

// busy is a key that somebody works on until a moment, and longer if others are
// quicker then.
type busy struct {
	claim.Store
	until  time.Time
	taken  int // by others, at so many tries
	looks  int
	tries  int
	broken error // of looks
}

func (b *busy) Claim(context.Context, claim.Request) (claim.Claim, error) {
	b.tries++
	if time.Now().Before(b.until) || b.tries <= b.taken {
		return claim.Claim{}, claim.ErrRunning()
	}
	return claim.Claim{LoanID: uuid.Max}, nil
}

func (b *busy) Running(context.Context, claim.Request) (bool, error) {
	b.looks++
	return time.Now().Before(b.until), b.broken
}

func TestClaim_WaitsForTheHolder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		store busy
		work  time.Duration // of the other
		wait  time.Duration
		code  fault.Code // "" is claimed
		took  time.Duration
	}{
		"nobody":                    {busy{}, 0, 0, "", 0},
		"somebody, no wait":         {busy{}, time.Second, 0, fault.RequestRunning, 0},
		"somebody who ends":         {busy{}, 300 * time.Millisecond, time.Second, "", 480 * time.Millisecond},
		"somebody who does not":     {busy{}, time.Hour, time.Second, fault.RequestRunning, time.Second},
		"others who are quicker":    {busy{taken: 3}, 0, time.Second, "", 200 * time.Millisecond},
		"a database that goes away": {busy{broken: errors.New("down")}, time.Hour, time.Second, fault.Internal, 20 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				tt.store.until = began.Add(tt.work)
				c, err := claim.NewService(&tt.store).Claim(t.Context(), claim.Request{Wait: tt.wait})
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

func TestClaim_EndsWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &busy{until: time.Now().Add(time.Hour)}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, leave)
		began := time.Now()
		if _, err := claim.NewService(store).Claim(ctx, claim.Request{Wait: 2 * time.Second}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("that took %s", took)
		}
	})
}
