package checkout_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// silentLocker answers no acquire.
type silentLocker struct{ *backend }

func (l silentLocker) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	l.requests = append(l.requests, req)
	<-ctx.Done()
	return "", ctx.Err()
}

func TestAcquire_GivesBackALockThatMayBeGranted(t *testing.T) {
	t.Parallel()
	late := fault.New(fault.Timeout, "storage did not answer in time")
	tests := map[string]struct {
		acquire []error
		held    int
		want    bool
	}{
		"the answer took too long":              {acquire: []error{late}, held: 0, want: true},
		"the answer was lost twice":             {acquire: []error{errGone, errGone}, held: 0, want: true},
		"storage failed, maybe after the grant": {acquire: []error{errDown}, held: 0, want: true},
		"an error without a code":               {acquire: []error{errors.New("boom")}, held: 0, want: true},
		"the answer was lost, then it was held": {acquire: []error{errGone}, held: 99, want: true},
		"the answer was lost, then it came":     {acquire: []error{errGone}, held: 0},
		"held by another check-out":             {held: 99},
		"too many wait":                         {acquire: []error{errFull, errFull, errFull, errFull}, held: 0},
		"refused":                               {acquire: []error{fault.New(fault.Invalid, "no")}, held: 0},
		"not begun for too much work":           {acquire: []error{fault.New(fault.Overloaded, "busy")}, held: 0},
		"the database has no space":             {acquire: []error{errFullDisk}, held: 0},
		"granted at once":                       {held: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				w.acquire, w.held, w.lockGone = tt.acquire, tt.held, errGone // of releases, which are logged
				_, _ = w.checkOut(t)
				if got := len(w.returned) == 1; got != tt.want || len(w.returned) > 1 {
					t.Fatalf("gave back %v, want it: %t", w.returned, tt.want)
				}
				if tt.want && w.returned[0] != librarytest.AnnID+"|"+w.requests[0].AcquisitionID {
					t.Errorf("gave back %v, asked for %v", w.returned, w.requests)
				}
			})
		})
	}
}

// A storage that ends while check-outs wait for a lock makes none of them wait for longer.
func TestAcquire_RepeatWaitsForTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		s := w.service()
		s.Locker = dyingLocker{w}
		w.held = 99
		_, err := s.CheckOut(t.Context(), checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		if budget := w.set.WaitBudget(); !fault.Is(err, fault.LockNotAcquired) || *w.endings[0].Wait != budget {
			t.Errorf("got %v after a wait of %s, want %s after %s", err, w.endings[0].Wait, fault.LockNotAcquired, budget)
		}
	})
}

// dyingLocker ends 100 ms before the first wait is over.
type dyingLocker struct{ *backend }

func (l dyingLocker) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	if len(l.requests) > 0 {
		return l.backend.Acquire(ctx, req)
	}
	l.requests = append(l.requests, req)
	<-time.After(req.Wait - 100*time.Millisecond)
	return "", errGone
}

func TestAcquire_RepeatsNothingForAFullDisk(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.acquire = []error{errFullDisk}
	if _, err := w.checkOut(t); !fault.Is(err, fault.Unavailable) || len(w.requests) != 1 {
		t.Errorf("got %v after %d tries, want %s after one", err, len(w.requests), fault.Unavailable)
	}
}

func TestAcquire_GivesBackTheLockOfAMachineThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		s := w.service()
		s.Locker = silentLocker{w}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := s.CheckOut(ctx, checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		if !errors.Is(err, context.DeadlineExceeded) || len(w.returned) != 1 ||
			!strings.HasSuffix(w.returned[0], w.requests[0].AcquisitionID) {
			t.Errorf("got %v, gave back %v, asked for %v", err, w.returned, w.requests)
		}
	})
}

func TestAcquire_EndsBetweenTwoTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.acquire = []error{errHeld} // at once, so the check-out waits itself
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		start := time.Now()
		_, err := w.service().CheckOut(ctx, checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 100*time.Millisecond {
			t.Errorf("got %v after %s, want the end of the wait", err, took)
		}
	})
}

var errSettings = fault.New(fault.SettingsChanged, "settings have another version")

// during is a storage that does something before each commit.
type during struct {
	*backend
	do func()
}

func (d during) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	if !d.refusesTurn(c) {
		d.do()
	}
	return d.backend.CheckOut(ctx, c)
}

func TestEnding_ExplainsALockThatWasLost(t *testing.T) {
	t.Parallel()
	off := settings.Settings{Version: "7", Waits: []time.Duration{time.Second}}
	tests := map[string]struct {
		set    settings.Settings
		commit []error
		held   int
		want   string
	}{
		"its lock was lost": {
			set: newBackend().set, commit: []error{errLost},
			want: "unable to acquire lock: the one it had was released by force or taken over, and no time was left to take " +
				"it again",
		},
		"the settings were changed again and again": {
			set: off, commit: []error{errSettings, errSettings},
			want: "unable to acquire lock: the lock's settings were changed meanwhile, and no time was left to begin again",
		},
		"another held it": {set: newBackend().set, held: 9, want: "unable to acquire lock"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				w.set, w.commit, w.held = tt.set, tt.commit, tt.held
				s := w.service()
				s.Committer = during{w, func() { <-time.After(w.set.WaitBudget() + time.Millisecond) }}
				_, err := s.CheckOut(t.Context(), checkout.Request{
					ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
				})
				if got := withoutParameters(t, err); got != `[{"message":"unable to acquire lock","code":"LOCK_NOT_ACQUIRED"}]` {
					t.Errorf("answered %s, want FOLIO's words", got)
				}
				checkDetails(t, err)
				e := w.endings[0]
				f, _ := errors.AsType[*fault.Error](err)
				waited := "0"
				if e.Wait != nil {
					waited = strconv.FormatInt(e.Wait.Milliseconds(), 10)
				}
				if got := f.Details[0].Parameters; *got[0].Value != "ann" || *got[1].Value != waited {
					t.Errorf("got the parameters %q and %q, want the patron and %s ms", *got[0].Value, *got[1].Value, waited)
				}
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

func TestEnding_OfAMachineThatLeavesWithALostLock(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	w := newBackend()
	w.commit = []error{errLost}
	s := w.service()
	s.Committer = during{w, leave}
	_, err := s.CheckOut(ctx, checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
	if e := w.endings[0]; !errors.Is(err, context.Canceled) || e.Outcome != checkout.OutcomeClientLeft ||
		e.Reason != "The machine left before it was answered" || len(w.commits) != 1 {
		t.Errorf("got %v after %d commits, and %+v", err, len(w.commits), e)
	}
}
