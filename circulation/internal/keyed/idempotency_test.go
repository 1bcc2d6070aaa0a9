package keyed_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestARepeatIsNotWorkedOn(t *testing.T) {
	t.Parallel()
	s := &storage{}
	s.wantLent(t, lends)
	s.wantLent(t, never(t))
	if _, err := s.requests().Do(t.Context(), "k", []byte(`{}`), s.admit, never(t)); !fault.Is(err, fault.KeyReused) {
		t.Errorf("another body: got %v, want %s", err, fault.KeyReused)
	}
	if want := []keyed.Outcome{keyed.Worked, keyed.Repeated, keyed.Reused}; !slices.Equal(s.ended, want) {
		t.Errorf("got %v, want %v", s.ended, want)
	}
}

func TestARefusalIsHeardAgainAndAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err     error
		verdict bool
	}{
		"invalid":           {fault.Validation(fault.Detail{Message: "no", Code: "C"}), true},
		"lock not acquired": {fault.New(fault.LockNotAcquired, "unable to acquire lock"), false},
		"outcome unknown":   {fault.New(fault.OutcomeUnknown, "?"), false},
		"item changed":      {fault.New(fault.ItemChanged, "?"), false},
		"forbidden":         {fault.New(fault.Forbidden, "?"), false},
		"unavailable":       {fault.New(fault.Unavailable, "?"), false},
		"a bug":             {errors.New("boom"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &storage{}
			if _, err := s.requests().Do(t.Context(), "k", body, s.admit, fails(tt.err)); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if !tt.verdict {
				s.wantLent(t, func(_ context.Context, c keyed.Claim) (schemas.CheckOutAnswer, error) {
					if !c.Taken || c.LoanID != loanID {
						t.Errorf("the repeat has the claim %+v, want one that was taken, for the same loan", c)
					}
					return lent, nil
				})
				return
			}
			_, err := s.requests().Do(t.Context(), "k", body, s.admit, never(t))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid || len(f.Details) != 1 || f.Details[0].Code != "C" {
				t.Errorf("the repeat got %v, want %v", err, tt.err)
			}
		})
	}
}

func TestTheClaimIsKeptWhileTheWorkLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		done := make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			_, err := s.requests().Do(ctx, "k", body, s.admit, func(context.Context, keyed.Claim) (schemas.CheckOutAnswer, error) {
				leave() // the machine's connection breaks, and the commit goes on
				<-time.After(20 * time.Second)
				return lent, nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		s.wantLent(t, never(t)) // waits for it
		<-done
		if len(s.claims) != 1 || s.renewed < 19 {
			t.Errorf("%d claims, renewed %d times, want 1 and 19", len(s.claims), s.renewed)
		}
		<-time.After(time.Minute)
		if s.renewed > 20 {
			t.Errorf("renewed %d times, also after the end", s.renewed)
		}
	})
}

func TestADeadInstanceIsTakenOverInSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		func() {
			defer func() { _ = recover() }()
			_, _ = s.requests().Do(t.Context(), "k", body, s.admit, func(context.Context, keyed.Claim) (schemas.CheckOutAnswer, error) {
				panic("dead")
			})
		}()
		began := time.Now()
		s.wantLent(t, lends)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("that took %s, want no more than the lease", took)
		}
		if want := []keyed.Outcome{keyed.TakenOver}; !slices.Equal(s.ended, want) {
			t.Errorf("got %v, want %v", s.ended, want)
		}
	})
}

func TestWhoeverWasTakenOverAnswersAsTheOther(t *testing.T) {
	t.Parallel()
	s := &storage{}
	s.wantLent(t, func(context.Context, keyed.Claim) (schemas.CheckOutAnswer, error) {
		s.mu.Lock() // it slept, and meanwhile somebody else finished
		s.holder, s.answer = "other", &lent
		s.mu.Unlock()
		return schemas.CheckOutAnswer{}, fault.New(fault.ClaimLost, "lost")
	})
	t.Run("also when it found a refusal", func(t *testing.T) {
		t.Parallel()
		s := &storage{}
		s.wantLent(t, func(context.Context, keyed.Claim) (schemas.CheckOutAnswer, error) {
			s.mu.Lock()
			s.holder, s.answer = "other", &lent
			s.mu.Unlock()
			return schemas.CheckOutAnswer{}, fault.Validation(fault.Detail{Message: "Item is already checked out"})
		})
	})
}

func TestARepeatThatWaitsInVainIsToldSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{hash: "", until: time.Now().Add(time.Hour), holder: "other"}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := s.requests().Do(ctx, "k", body, s.admit, never(t)); !fault.Is(err, fault.RequestRunning) {
			t.Errorf("got %v, want %s", err, fault.RequestRunning)
		}
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, leave)
		if _, err := s.requests().Do(left, "k", body, s.admit, never(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("a machine that left: got %v", err)
		}
	})
}

func TestRequests_DoHoldsNoPlaceWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			s.wantLent(t, func(context.Context, keyed.Claim) (schemas.CheckOutAnswer, error) {
				<-time.After(20 * time.Second)
				return lent, nil
			})
		})
		synctest.Wait()
		for range 5 {
			wg.Go(func() { s.wantLent(t, never(t)) })
		}
		for range 19 {
			synctest.Wait()
			s.mu.Lock()
			if s.inside != 1 {
				t.Errorf("%d places are taken up, want only the one of the first request", s.inside)
			}
			s.mu.Unlock()
			<-time.After(time.Second)
		}
	})
}

func TestRequests_DoAsksStorageForNothingWithoutAPlace(t *testing.T) {
	t.Parallel()
	s := &storage{full: fault.New(fault.Overloaded, "too many")}
	if _, err := s.requests().Do(t.Context(), "k", body, s.admit, never(t)); !errors.Is(err, s.full) {
		t.Errorf("got %v, want %v", err, s.full)
	}
	if want := []keyed.Outcome{keyed.Refused}; len(s.claims) > 0 || !slices.Equal(s.ended, want) {
		t.Errorf("ended as %v with the claims %v, want %v and none", s.ended, s.claims, want)
	}
	s.full = nil
	s.wantLent(t, lends)
}

func TestALostAnswerOfTheClaimCostsNoLease(t *testing.T) {
	t.Parallel()
	s := &storage{lose: []error{fault.New(fault.Unavailable, "lost")}}
	s.wantLent(t, lends)
	if len(s.claims) != 2 || s.claims[0] != s.claims[1] {
		t.Errorf("asked for the claims %v, want the same one twice", s.claims)
	}
	gone := &storage{lose: []error{fault.New(fault.Unavailable, "lost"), fault.New(fault.Unavailable, "lost")}}
	if _, err := gone.requests().Do(t.Context(), "k", body, s.admit, never(t)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s: without storage nothing is lent", err, fault.Unavailable)
	}
}

func TestAnAnswerThatCannotBeKept(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.Unavailable, "down")
	once := &storage{refuse: []error{down}}
	once.wantLent(t, lends)
	once.wantLent(t, never(t)) // kept at the second try

	s := &storage{refuse: []error{down, down}}
	s.wantLent(t, lends) // the loan is there all the same

	s = &storage{refuse: []error{down, down}}
	if _, err := s.requests().Do(t.Context(), "k", body, s.admit, fails(fault.Validation(fault.Detail{Message: "no"}))); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s: a repeat might be answered otherwise", err, fault.Unavailable)
	}
}
