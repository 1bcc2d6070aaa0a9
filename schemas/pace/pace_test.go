package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/schemas/pace"
)

func TestEvery_BeginsATurnEachInterval(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, turn time.Duration
		want        []time.Duration // when the turns begin
	}{
		"at once":     {first: 0, turn: time.Second, want: []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		"later":       {first: 3 * time.Second, want: []time.Duration{3 * time.Second, 13 * time.Second, 23 * time.Second}},
		"a slow turn": {first: 0, turn: 12 * time.Second, want: []time.Duration{0, 12 * time.Second, 24 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
				defer cancel()
				began, turn := time.Now(), 0
				for range pace.Every(ctx, tt.first, 10*time.Second) {
					if got := time.Since(began); turn >= len(tt.want) || got != tt.want[turn] {
						t.Errorf("turn %d begins after %v, want %v", turn, got, tt.want)
					}
					turn++
					pace.Wait(ctx, tt.turn)
				}
				if took := time.Since(began); turn != len(tt.want) || took != 25*time.Second {
					t.Errorf("%d turns until %v, want %d until ctx was done", turn, took, len(tt.want))
				}
			})
		})
	}
}

func TestEvery_EndsWithItsLoop(t *testing.T) {
	t.Parallel()
	turns := 0
	for range pace.Every(t.Context(), 0, time.Nanosecond) {
		if turns++; turns == 3 {
			break
		}
	}
	if turns != 3 {
		t.Errorf("%d turns, want 3", turns)
	}
}

func TestWait_SaysWhetherItWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		for _, want := range []bool{true, false, false} {
			if got := pace.Wait(ctx, 10*time.Second); got != want {
				t.Errorf("got %v after %v, want %v", got, ctx.Err(), want)
			}
		}
	})
}
