package checkout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var errSettings = fault.New(fault.SettingsChanged, "settings have another version")

// during is a storage that does something before each commit.
type during struct {
	*world
	do func()
}

func (d during) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	d.do()
	return d.world.CheckOut(ctx, c)
}

func TestTheHistoryTellsWhyALockCouldNotBeTakenAgain(t *testing.T) {
	t.Parallel()
	off := settings.Settings{Version: "7", Waits: []time.Duration{time.Second}}
	tests := map[string]struct {
		set    settings.Settings
		commit []error
		held   int
		want   string
	}{
		"its lock was lost": {
			set: newWorld().set, commit: []error{errLost},
			want: "unable to acquire lock: the one it had was released by force or taken over, and no time was left to take it again",
		},
		"the settings were changed again and again": {
			set: off, commit: []error{errSettings, errSettings},
			want: "unable to acquire lock: the lock's settings were changed meanwhile, and no time was left to begin again",
		},
		"another held it": {set: newWorld().set, held: 9, want: "unable to acquire lock"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.set, w.commit, w.held = tt.set, tt.commit, tt.held
				s := w.service()
				s.Committer = during{w, func() { <-time.After(w.set.WaitBudget() + time.Millisecond) }}
				_, err := s.CheckOut(t.Context(), checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID})
				if got := withoutParameters(t, err); got != `[{"message":"unable to acquire lock","code":"LOCK_NOT_ACQUIRED"}]` {
					t.Errorf("answered %s, want FOLIO's words", got)
				}
				e := w.endings[0]
				if e.Outcome != checkout.OutcomeLockNotAcquired || e.Code != "LOCK_NOT_ACQUIRED" || e.Reason != tt.want {
					t.Errorf("the history has %s %s %q, want %q", e.Outcome, e.Code, e.Reason, tt.want)
				}
				if len(w.commits) != len(tt.commit) {
					t.Errorf("committed %d times, want %d", len(w.commits), len(tt.commit))
				}
			})
		})
	}
}

func TestAMachineThatLeavesWhileItsLockIsLostHasLeft(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	w := newWorld()
	w.commit = []error{errLost}
	s := w.service()
	s.Committer = during{w, leave}
	_, err := s.CheckOut(ctx, checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID})
	if e := w.endings[0]; !errors.Is(err, context.Canceled) || e.Outcome != checkout.OutcomeClientLeft || len(w.commits) != 1 {
		t.Errorf("got %v after %d commits, and %+v", err, len(w.commits), e)
	}
}
