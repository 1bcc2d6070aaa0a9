package checkout_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// stuck is a storage whose last calls take as long as their time-outs, or as the script says. A
// call on a context that has ended fails the test.
type stuck struct {
	*backend
	t        *testing.T
	commits  []answerAfter // of CheckOut; afterwards it hangs
	reading  time.Duration // of the changed item
	sent     int
	releases int
}

type answerAfter struct {
	wait time.Duration
	err  error
}

// waitFor lets the call last for the wait.
func (s *stuck) waitFor(ctx context.Context, call string, wait time.Duration) error {
	if ctx.Err() != nil {
		s.t.Errorf("%s was sent on a context that has ended", call)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stuck) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	if s.refusesTurn(c) {
		return schemas.CheckOutResult{}, errLost
	}
	next := answerAfter{wait: time.Hour}
	if s.sent < len(s.commits) {
		next = s.commits[s.sent]
	}
	s.sent++
	if err := s.waitFor(ctx, "a commit", next.wait); err != nil {
		return schemas.CheckOutResult{}, err
	}
	return schemas.CheckOutResult{}, next.err
}

func (s *stuck) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	if subjects.ItemID != "" {
		if err := s.waitFor(ctx, "reading the changed item", s.reading); err != nil {
			return library.Facts{}, err
		}
	}
	return s.backend.Snapshot(ctx, subjects)
}

// Refresh reads the settings and announces the environment.
func (s *stuck) Refresh(context.Context) settings.Settings {
	<-time.After(12 * time.Second)
	return s.set
}

func (s *stuck) Release(ctx context.Context, _ string) error {
	s.releases++
	return s.waitFor(ctx, "a release", time.Hour)
}

func (s *stuck) ReleaseDurably(ctx context.Context, id string) error { return s.Release(ctx, id) }

func (s *stuck) CommittedLoan(ctx context.Context, _ string) (json.RawMessage, error) {
	return nil, s.waitFor(ctx, "reading the loan", time.Hour)
}

func (s *stuck) SettleCheckOut(ctx context.Context, _ string) (schemas.SettledCheckOut, error) {
	return schemas.SettledCheckOut{}, s.waitFor(ctx, "a settlement", time.Hour)
}

func (s *stuck) LeaseKey(context.Context, schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	return checkout.KeyLease{LoanID: librarytest.OtherID}, nil, nil
}

func (s *stuck) RenewLease(ctx context.Context, _ string, _ time.Duration) error {
	return s.waitFor(ctx, "a change of the key lease", time.Hour)
}

func (s *stuck) AnswerLease(ctx context.Context, _ string, _ keyed.Answer) error {
	return s.waitFor(ctx, "a change of the key lease", time.Hour)
}

func TestCheckOut_EndsWithinTheFinishMargin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		commits []answerAfter
		reading time.Duration
		sent    int // commits
	}{
		"no commit is answered": {reading: 0, sent: 2},
		"commits fail at once": {
			commits: slices.Repeat([]answerAfter{{0, errGone}}, 99), reading: 0, sent: 0, // as many as the budget allows
		},
		"the item changed after a silence, and no other commit is answered": {
			commits: []answerAfter{
				{2400 * time.Millisecond, errGone}, {2400 * time.Millisecond, errChanged},
			}, reading: time.Second, sent: 2 + 1,
		},
		"the item changed, and the other commits fail at once": {
			commits: append([]answerAfter{{2400 * time.Millisecond, errGone}, {2400 * time.Millisecond, errChanged}},
				slices.Repeat([]answerAfter{{0, errGone}}, 99)...), reading: 900 * time.Millisecond, sent: 0,
		},
		"the item changed, and reading it takes the rest of the time": {
			commits: []answerAfter{
				{2400 * time.Millisecond, errGone}, {2400 * time.Millisecond, errChanged},
			}, reading: time.Hour, sent: 2,
		},
		"the settings changed, and reading them takes its longest": {
			commits: []answerAfter{
				{2400 * time.Millisecond, errGone}, {2400 * time.Millisecond, fault.New(fault.SettingsChanged, "other settings")},
			}, reading: 0, sent: 2,
		},
		"the commit is done, and the release hangs": {commits: []answerAfter{{0, nil}}, reading: 0, sent: 1},
	}
	for name, tt := range tests {
		for _, way := range []struct {
			name         string
			keyed, takes bool
		}{
			{name: "", keyed: false, takes: false},
			{name: ", with a key", keyed: true, takes: false},
			{name: ", and the commit takes the lock", keyed: false, takes: true},
		} {
			t.Run(name+way.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &stuck{backend: newBackend(), t: t, commits: tt.commits, reading: tt.reading}
					s.takes = way.takes
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					s.onStep = func(step checkout.Step) { // the request's time is over when the commit begins
						if step == checkout.Locked && !way.takes || step == checkout.Validated && way.takes {
							<-time.After(30*time.Second - time.Millisecond)
						}
					}
					start := time.Now()
					_ = s.lend(ctx, way.keyed)
					if over := time.Since(start) - 30*time.Second; over >= config.FinishMargin {
						t.Errorf("ended %s after the request's time, want less than %s", over, config.FinishMargin)
					}
					if tt.sent != 0 && s.sent != tt.sent {
						t.Errorf("sent %d commits, want %d", s.sent, tt.sent)
					}
					if (s.releases == 0) != way.takes {
						t.Errorf("the lock was released %d times", s.releases)
					}
				})
			})
		}
	}
}

// lend checks the book out, with an Idempotency-Key or without.
func (s *stuck) lend(ctx context.Context, withKey bool) error {
	service := s.service()
	service.Library, service.Locker, service.Committer, service.Settings = s, s, s, s
	req := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
	if !withKey {
		_, err := service.CheckOut(ctx, req)
		return err
	}
	requests := keyed.Requests{
		Storage: s, CheckOuts: service, Ended: func(keyed.Outcome) {}, Log: slog.New(slog.DiscardHandler),
	}
	_, err := requests.CheckOut(ctx, "key", "hash", req,
		func(_ checkout.Lent, err error) (keyed.Answer, error) { return keyed.Answer{}, err })
	return err
}

func TestCheckOut_IsLentIfTheReleaseHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{backend: newBackend(), t: t, commits: []answerAfter{{0, nil}}}
		start := time.Now()
		if err := s.lend(t.Context(), false); err != nil || time.Since(start) >= config.FinishMargin {
			t.Errorf("got %v after %s, want it lent", err, time.Since(start))
		}
	})
}

func TestCheckOut_RepeatsNoCommitWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{
			backend: newBackend(), t: t,
			commits: []answerAfter{{2400 * time.Millisecond, errGone}, {2400 * time.Millisecond, errChanged}},
		}
		s.reading = time.Hour
		if err := s.lend(t.Context(), false); fault.Is(err, fault.OutcomeUnknown) || err == nil || s.sent != 2 {
			t.Errorf("got %v after %d commits, want a failure that says nothing was lent", err, s.sent)
		}
	})
}

// One loan is lent once in history and metrics, also if its request slept while a repeat took the key over.
func TestCheckOut_OfALoanThatARepeatMadeIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unlocked bool
		commits  []error // before the one that finds the loan
		want     string
	}{
		"with the lock":          {want: checkout.OutcomeTakenOver},
		"without the lock":       {unlocked: true, want: checkout.OutcomeTakenOver},
		"an own commit was lost": {commits: []error{errGone}, want: checkout.OutcomeLent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.set.Enabled, w.set.Version, w.commit, w.takes, w.repeated = !tt.unlocked, "1", tt.commits, true, true
			lease := checkout.KeyLease{ID: "lease", LoanID: librarytest.OtherID}
			lent, err := w.service().Lend(t.Context(), checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
			}, lease)
			if err != nil || lent.LoanID != lease.LoanID {
				t.Fatalf("got %+v, %v, want the loan", lent, err)
			}
			if e := w.endings[0]; len(w.endings) != 1 || e.Outcome != tt.want || e.LoanID != lease.LoanID {
				t.Errorf("reported %+v, want %s with the loan", w.endings, tt.want)
			}
		})
	}
}
