package checkin_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// forgetful is a storage that keeps each check-in by its id and loses answers by its script. nil is
// an answer that arrives.
type forgetful struct {
	*backend
	t      *testing.T
	script []func(context.Context) error
	kept   map[string]schemas.CheckInResult
	sent   []schemas.CheckIn
}

func (f *forgetful) CheckIn(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error) {
	if ctx.Err() != nil {
		f.t.Error("a commit was sent on a context that has ended")
	}
	f.sent = append(f.sent, c)
	answer, repeated := f.kept[c.ID]
	if !repeated {
		var err error
		if answer, err = f.backend.CheckIn(ctx, c); err != nil {
			return answer, err
		}
		f.kept[c.ID] = answer
	}
	if len(f.script) > 0 {
		lose := f.script[0]
		f.script = f.script[1:]
		if lose != nil {
			return schemas.CheckInResult{}, lose(ctx)
		}
	}
	return answer, nil
}

// loseAnswer loses the answer at once.
func loseAnswer(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// answerLate lets the call's time run out.
func answerLate(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// sleepLong stops the process until long after all of its time-outs.
func sleepLong(ctx context.Context) error {
	<-time.After(time.Minute)
	return ctx.Err()
}

func TestCheckIn_SettlesALostAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script    []func(context.Context) error
		answer    []error // of storage, before it keeps one
		code      fault.Code
		unchanged bool // the error says so
		ids       int  // different ones, of the check-ins that were sent
		done      int  // check-ins that were kept
	}{
		"the answer was lost":      {script: []func(context.Context) error{loseAnswer(errGone)}, ids: 1, done: 1},
		"the answer came too late": {script: []func(context.Context) error{answerLate}, ids: 1, done: 1},
		"storage failed after the commit": {
			script: []func(context.Context) error{loseAnswer(errDown), loseAnswer(errGone)}, ids: 1, done: 1,
		},
		"the process slept":             {script: []func(context.Context) error{sleepLong}, ids: 1, done: 1},
		"it was lost before the commit": {answer: []error{errGone}, ids: 1, done: 1},
		"it was lost, then refused":     {answer: []error{errGone, errChanged, errChanged}, code: fault.ItemChanged, ids: 1},
		"no answer ever comes": {
			script: slices.Repeat([]func(context.Context) error{answerLate}, 99), code: fault.Internal, ids: 1, done: 1,
		},
		"it was lost, then the disk is full": {
			script: append([]func(context.Context) error{loseAnswer(errGone)},
				slices.Repeat([]func(context.Context) error{loseAnswer(errFullDisk)}, 99)...),
			code: fault.Unavailable, ids: 1, done: 1,
		},
		"it was lost, then the disk was full once": {
			script: []func(context.Context) error{loseAnswer(errGone), loseAnswer(errFullDisk)}, ids: 1, done: 1,
		},
		"the disk is full":            {answer: []error{errFullDisk}, code: fault.Unavailable, unchanged: true, ids: 1},
		"a refusal is not sent again": {answer: []error{fault.New(fault.Forbidden, "no")}, code: fault.Forbidden, ids: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newBackend()
				d.answers = tt.answer
				f := &forgetful{backend: d, t: t, script: tt.script, kept: map[string]schemas.CheckInResult{}}
				r := &checkin.Service{Library: d, Returner: f, Log: slog.New(slog.DiscardHandler)}
				start := time.Now()
				in, err := r.CheckIn(okapi.NewContext(t.Context(), okapi.Call{UserID: staffID}), newReturn())
				if fault.CodeOf(err) != tt.code || fault.ChangedNothing(err) != tt.unchanged {
					t.Fatalf("got %v, which changed nothing: %t; want %q, %t", err, fault.ChangedNothing(err), tt.code, tt.unchanged)
				}
				if err == nil && (len(in.Loan) == 0 || in.Copy.Item.Status.Name != "Available") {
					t.Errorf("answered %s and %+v, want what storage answered the first time", in.Loan, in.Copy.Item)
				}
				ids := map[string]bool{}
				for _, c := range f.sent {
					ids[c.ID] = true
				}
				if ids[""] || len(ids) != tt.ids || len(f.kept) != tt.done {
					t.Errorf("sent %d times under %d ids, kept %d check-ins; want %d ids and %d", len(f.sent), len(ids), len(f.kept),
						tt.ids, tt.done)
				}
				if took := time.Since(start); name != "the process slept" && took >= config.FinishMargin {
					t.Errorf("answered after %s, want less than %s", took, config.FinishMargin)
				}
			})
		})
	}
}

func TestCheckIn_SettlesOnceForAMachineThatLeft(t *testing.T) {
	t.Parallel()
	d := newBackend()
	d.leaves = true // while storage commits
	f := &forgetful{
		backend: d, t: t, script: []func(context.Context) error{loseAnswer(errGone)},
		kept: map[string]schemas.CheckInResult{},
	}
	ctx, cancel := context.WithCancel(okapi.NewContext(t.Context(), okapi.Call{UserID: staffID}))
	defer cancel()
	d.left = cancel
	r := &checkin.Service{Library: d, Returner: f, Log: slog.New(slog.DiscardHandler)}
	if _, err := r.CheckIn(ctx, newReturn()); err != nil || len(f.kept) != 1 || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("got %v, kept %d check-ins", err, len(f.kept))
	}
}
