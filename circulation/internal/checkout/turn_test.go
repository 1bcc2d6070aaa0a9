package checkout_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

func TestTurn_CommitTakesAFreeLock(t *testing.T) {
	t.Parallel()
	errSettingsChanged := fault.New(fault.SettingsChanged, "the settings have another version")
	tests := map[string]struct {
		answers []error
		open    []int
		want    [][]string
		turns   int // commits that take the lock
		outcome string
	}{
		"free": {want: [][]string{committed}, turns: 1, outcome: checkout.OutcomeLent},
		"held": {
			answers: []error{errHeld}, want: [][]string{committed, grant, committed, givenBack}, turns: 1,
			outcome: checkout.OutcomeLent,
		},
		"too many wait": {
			answers: []error{errFull}, want: [][]string{committed, grant, committed, givenBack}, turns: 1,
			outcome: checkout.OutcomeLent,
		},
		"storage of an earlier build": {
			answers: []error{errLost}, want: [][]string{committed, grant, committed, givenBack}, turns: 1,
			outcome: checkout.OutcomeLent,
		},
		"the settings change": {
			answers: []error{errSettingsChanged}, want: [][]string{committed, grant, committed, givenBack}, turns: 1,
			outcome: checkout.OutcomeLent,
		},
		"the count refuses": {
			open: []int{2, 3}, want: [][]string{committed}, turns: 1, outcome: checkout.OutcomeLimitReached,
		},
		"the item changes": {
			answers: []error{errChanged}, want: [][]string{committed, committed}, turns: 2, outcome: checkout.OutcomeLent,
		},
		"the answer is lost": {
			answers: []error{errGone}, want: [][]string{committed, committed}, turns: 2, outcome: checkout.OutcomeLent,
		},
		"the answer is lost, and the repeat finds the lock held": {
			answers: []error{errGone, errHeld}, want: [][]string{committed, committed, grant, committed, givenBack}, turns: 2,
			outcome: checkout.OutcomeLent,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{backend: newBackend()}
				r.takes, r.commit, r.open = true, tt.answers, tt.open
				_ = r.lend(t)
				if want := slices.Concat(tt.want...); !slices.Equal(r.calls, want) {
					t.Errorf("got  %q\nwant %q", r.calls, want)
				}
				checkTurns(t, r.commits, tt.turns)
				if e := r.endings[0]; e.Outcome != tt.outcome || e.Wait == nil {
					t.Errorf("ended as %+v, want %s and a wait", e, tt.outcome)
				}
				if n := len(r.waiting); n == 0 || r.waiting[0] != 1 || r.waiting[n-1] != -1 {
					t.Errorf("waited as %v, want each begin ended", r.waiting)
				}
			})
		})
	}
}

// checkTurns checks that the first commits take the lock, under an id of their own, and that all have
// the limits and release the lock.
func checkTurns(t *testing.T, commits []schemas.CheckOut, turns int) {
	t.Helper()
	for i, c := range commits {
		if (c.TakeLock != nil) != (i < turns) || c.LockID == "" || !c.ReleaseLock || len(c.Limits) != 1 {
			t.Errorf("commit %d of %d is %+v, want %d that take the lock", i, len(commits), c, turns)
		}
	}
}

// A lock that is held keeps what is left of the first wait, and the place in line.
func TestTurn_GoesOnAsOneAcquisition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{backend: newBackend()}
		r.takes, r.commit = true, []error{errHeld}
		if err := r.lend(t); err != nil {
			t.Fatal(err)
		}
		turn, asked := r.commits[0].TakeLock, r.requests[0]
		if turn.WaitMs != schemas.MaxLockTurnWaitMs || asked.Wait != 490*time.Millisecond ||
			turn.AcquisitionID != asked.AcquisitionID {
			t.Errorf("the commit asked for %+v and the acquire for %+v, want one acquisition and 500 ms in all", turn, asked)
		}
		if wait := *r.endings[0].Wait; wait != 20*time.Millisecond {
			t.Errorf("waited %s, want the time of both calls", wait)
		}
		if r.set.Waits[0] != 500*time.Millisecond {
			t.Errorf("the settings have the waits %v now", r.set.Waits)
		}
	})
}

// A turn that takes as long as the first wait was the try of that wait. So the next call waits too, because
// one that does not gives the place in line up.
func TestTurn_UsesUpAShortWait(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := map[string]struct{ waits, want []time.Duration }{ // the turn takes 10 ms
		"the first wait is shorter":  {waits: []time.Duration{1 * ms, 500 * ms}, want: []time.Duration{500 * ms, 0}},
		"as long as the turn":        {waits: []time.Duration{10 * ms, 500 * ms}, want: []time.Duration{500 * ms, 0}},
		"less than 1 ms is left":     {waits: []time.Duration{10*ms + 999, 500 * ms}, want: []time.Duration{500 * ms, 0}},
		"1 ms is left":               {waits: []time.Duration{11 * ms, 500 * ms}, want: []time.Duration{ms, 500 * ms, 0}},
		"a first try without a wait": {waits: []time.Duration{0, 500 * ms}, want: []time.Duration{500 * ms, 0}},
		"there is no other wait":     {waits: []time.Duration{10 * ms}, want: []time.Duration{0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{backend: newBackend()}
				r.takes, r.commit, r.backend.held, r.set.Waits = true, []error{errHeld}, 9, slices.Clone(tt.waits)
				_ = r.lend(t)
				asked := convert.All(r.requests, func(req checkout.LockRequest) time.Duration { return req.Wait })
				if !slices.Equal(asked, tt.want) || !slices.Equal(r.set.Waits, tt.waits) {
					t.Errorf("asked with the waits %v, want %v; the settings have %v now", asked, tt.want, r.set.Waits)
				}
			})
		})
	}
}

func TestTurn_NeedsNoWaits(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.takes, w.set.Waits, w.commit = true, nil, []error{errHeld}
	if _, err := w.checkOut(t); err != nil || w.commits[0].TakeLock.WaitMs != 0 || w.requests[0].Wait != 0 {
		t.Errorf("got %v, committed %+v, asked for %+v", err, w.commits, w.requests)
	}
}

func TestTurn_PassesAllSteps(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.takes, w.waitMs = true, 1.5 // a repeat says nothing of the release
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	want := []checkout.Step{checkout.Validated, checkout.Locked, checkout.Committed, checkout.Released}
	if !slices.Equal(w.steps, want) || *w.endings[0].Wait != 1500*time.Microsecond {
		t.Errorf("steps %v and a wait of %s, want %v and that of storage", w.steps, *w.endings[0].Wait, want)
	}
	if len(w.requests) != 0 || len(w.released) != 0 {
		t.Errorf("acquired %v and released %v, want neither", w.requests, w.released)
	}
}

// An unknown outcome is settled by the loan's id: no lock fences it.
func TestTurn_UnknownOutcomeIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.takes, w.commit = true, slices.Repeat([]error{errGone}, 99)
		lent, err := w.checkOut(t)
		if err != nil || len(w.settled) != 1 || w.settled[0] != w.endings[0].LoanID ||
			lent.Copy.Item.Status.Date != storedDate {
			t.Errorf("got %v after settling %v, want the loan that was committed", err, w.settled)
		}
		if w.requests != nil || w.endings[0].UserID != librarytest.AnnID {
			t.Errorf("acquired %v, and ended as %+v", w.requests, w.endings[0])
		}
	})
}

// A panic must not leave a check-out on the list of those that wait.
func TestTurn_WaitEndsAfterAPanic(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]bool{"in the turn": true, "in the commit under an acquired lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.takes, w.onStep = takes, func(step checkout.Step) {
				if step == checkout.Locked {
					panic("a bug")
				}
			}
			defer func() {
				if recover() == nil || !slices.Equal(w.waiting, []int{1, -1}) {
					t.Errorf("waited as %v, want one begin and its end", w.waiting)
				}
			}()
			_, _ = w.checkOut(t)
		})
	}
}
