package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas/fault"
)

func TestRequests_AnswerARepeatWithoutWork(t *testing.T) {
	t.Parallel()
	s := &storage{}
	s.wantLent(t, lends)
	s.wantLent(t, never(t))
	if _, err := s.requests().Do(t.Context(), "k", "other", book, never(t)); !fault.Is(err, fault.KeyReused) {
		t.Errorf("another body: got %v, want %s", err, fault.KeyReused)
	}
	if want := []keyed.Outcome{keyed.Worked, keyed.Repeated, keyed.Reused}; !slices.Equal(s.ended, want) {
		t.Errorf("got %v, want %v", s.ended, want)
	}
}

func TestRequests_RepeatARefusalAndRetryAFailure(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err     error
		verdict string // the code of its reason; none if a repeat tries again
	}{
		"without a list":    {fault.New(fault.Invalid, "no"), "INVALID"},
		"invalid":           {fault.Validation(fault.Detail{Message: "no", Code: "C"}), "C"},
		"lock not acquired": {fault.New(fault.LockNotAcquired, "unable to acquire lock"), ""},
		"outcome unknown":   {fault.New(fault.OutcomeUnknown, "?"), ""},
		"item changed":      {fault.New(fault.ItemChanged, "?"), ""},
		"forbidden":         {fault.New(fault.Forbidden, "?"), ""},
		"unavailable":       {fault.New(fault.Unavailable, "?"), ""},
		"a bug":             {errors.New("boom"), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &storage{}
			if _, err := s.requests().Do(t.Context(), "k", hash, book, fails(tt.err)); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if tt.verdict == "" {
				s.wantLent(t, func(_ context.Context, c checkout.KeyLease) (keyed.Answer, error) {
					if !c.Taken || c.LoanID != loanID {
						t.Errorf("the repeat has the lease %+v, want one that was taken, for the same loan", c)
					}
					return lent, nil
				})
				return
			}
			_, err := s.requests().Do(t.Context(), "k", hash, book, never(t))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid || len(f.Details) != 1 || f.Details[0].Message != "no" ||
				f.Details[0].Code != tt.verdict || s.answer.LoanID != loanID {
				t.Errorf("the repeat got %v, want %v", err, tt.err)
			}
		})
	}
}

func TestRequests_GoOnWithAnotherLoanAfterItsOwnWasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		began, tries := time.Now(), 0
		s.wantLent(t, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
			if tries++; tries == 1 {
				return keyed.Answer{}, fault.New(fault.GivenUp, "by the request that was taken over")
			}
			return lent, nil
		})
		if took := time.Since(began); tries != 2 || s.given != 1 || took > time.Second {
			t.Errorf("%d tries in %s, %d leases given up, want a second try soon, after the first gave its lease up",
				tries, took, s.given)
		}
		if want := []keyed.Outcome{keyed.TakenOver}; !slices.Equal(s.ended, want) {
			t.Errorf("got %v, want %v", s.ended, want)
		}
	})
}

func TestRequests_RenewTheLeaseDuringTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{panics: true}
		done := make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			_, err := s.requests().Do(ctx, "k", hash, book, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
				leave() // the caller leaves, and the commit goes on
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
		if len(s.leases) != 1 || s.renewed < 18 {
			t.Errorf("%d leases, renewed %d times, want 1 and at least 18 after a panic", len(s.leases), s.renewed)
		}
		<-time.After(time.Minute)
		if s.renewed > 20 {
			t.Errorf("renewed %d times, also after the end", s.renewed)
		}
	})
}

func TestRequests_GiveUpNoLeaseBeforeItsRenewalEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{slow: 5 * time.Second}
		_, err := s.requests().Do(t.Context(), "k", hash, book,
			func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
				<-time.After(1500 * time.Millisecond)
				return keyed.Answer{}, fault.New(fault.LockNotAcquired, "unable to acquire lock")
			})
		<-time.After(10 * time.Second)
		if !fault.Is(err, fault.LockNotAcquired) || s.given != 1 || !s.until.IsZero() {
			t.Errorf("got %v; the lease was given up %d times and lasts until %s, want an end of it", err, s.given, s.until)
		}
	})
}

func TestRequests_AnswerAfterTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{until: time.Now().Add(time.Second), holder: "other"}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got, err := s.requests().Do(ctx, "k", hash, book, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
			<-time.After(3 * time.Second)
			return lent, nil
		})
		if err != nil || !same(got, lent) {
			t.Errorf("got %+v, %v after a wait for another request, want the loan", got, err)
		}
	})
}

func TestRequests_TakeOverADeadInstanceInSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		func() {
			defer func() { _ = recover() }()
			dies := func(context.Context, checkout.KeyLease) (keyed.Answer, error) { panic("dead") }
			_, _ = s.requests().Do(t.Context(), "k", hash, book, dies)
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

func TestRequests_AnswerLikeTheRequestThatTookOver(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]keyed.Work{
		"after a commit without the lease": fails(fault.New(fault.KeyLeaseLost, "lost")),
		"after a refusal":                  fails(fault.Validation(fault.Detail{Message: "Item is already checked out"})),
		"after a refusal in the front's words": func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
			return keyed.Answer{LoanID: loanID, Loan: []byte(`{"lent":false}`), Refused: true}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &storage{}
			s.wantLent(t, func(ctx context.Context, l checkout.KeyLease) (keyed.Answer, error) {
				s.mu.Lock() // another request finished while it slept
				s.holder, s.answer = "other", &lent
				s.mu.Unlock()
				return work(ctx, l)
			})
		})
	}
}

func TestRequests_WaitUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{hash: "", until: time.Now().Add(time.Hour), holder: "other"}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := s.requests().Do(ctx, "k", hash, book, never(t)); !fault.Is(err, fault.RequestRunning) {
			t.Errorf("got %v, want %s", err, fault.RequestRunning)
		}
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, leave)
		if _, err := s.requests().Do(left, "k", hash, book, never(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: got %v", err)
		}
		if s.late > 0 || len(s.failed) > 0 {
			t.Errorf("%d and %v ended as check-outs of their own, which get no place", s.late, s.failed)
		}
	})
}

// Callers learn neither that another request took over nor that a loan was given up.
func TestRequests_EndOnceIfTheirTimeEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.GivenUp, fault.KeyLeaseLost} {
		for name, took := range map[string]time.Duration{"during the work": time.Second, "after it": 0} {
			t.Run(string(code)+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &storage{}
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					_, err := s.requests().Do(ctx, "k", hash, book, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
						<-time.After(took)
						return keyed.Answer{}, fault.New(code, "by another request")
					})
					if !errors.Is(err, context.DeadlineExceeded) || s.late > 0 || len(s.ended) != 1 {
						t.Errorf("got %v after %v and %d tries after the end, want one end", err, s.ended, s.late)
					}
				})
			})
		}
	}
}

func TestRequests_HoldNoPlaceWhileTheyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			s.wantLent(t, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
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
				t.Errorf("%d places are occupied, want only the one of the first request", s.inside)
			}
			s.mu.Unlock()
			<-time.After(time.Second)
		}
	})
}

func TestRequests_CallNoStorageWithoutAPlace(t *testing.T) {
	t.Parallel()
	s := &storage{full: fault.New(fault.Overloaded, "too many")}
	if _, err := s.requests().Do(t.Context(), "k", hash, book, never(t)); !errors.Is(err, s.full) {
		t.Errorf("got %v, want %v", err, s.full)
	}
	if want := []keyed.Outcome{keyed.Refused}; len(s.leases) > 0 || !slices.Equal(s.ended, want) {
		t.Errorf("ended as %v with the leases %v, want %v and none", s.ended, s.leases, want)
	}
	s.full = nil
	s.wantLent(t, lends)
}

func TestRequests_RepeatALeaseWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := &storage{lose: []error{fault.New(fault.Unavailable, "lost")}}
	s.wantLent(t, lends)
	if len(s.leases) != 2 || s.leases[0] != s.leases[1] {
		t.Errorf("asked for the leases %v, want the same one twice", s.leases)
	}
	gone := &storage{lose: []error{fault.New(fault.Unavailable, "lost"), fault.New(fault.Unavailable, "lost")}}
	if _, err := gone.requests().Do(t.Context(), "k", hash, book, never(t)); !fault.Is(err, fault.Unavailable) ||
		len(gone.failed) != 1 || len(s.failed) > 0 {
		t.Errorf("got %v, and %v ended, want %s once: without storage nothing is lent", err, gone.failed, fault.Unavailable)
	}
}

func TestRequests_EndWithAnAnswerThatIsNotKept(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.Unavailable, "down")
	once := &storage{refuse: []error{down}}
	once.wantLent(t, lends)
	once.wantLent(t, never(t)) // kept at the second try

	s := &storage{refuse: []error{down, down}}
	s.wantLent(t, lends) // the loan exists

	for _, refuses := range []keyed.Work{
		fails(fault.Validation(fault.Detail{Message: "no"})),
		func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
			return keyed.Answer{Refused: true}, nil
		},
	} {
		s = &storage{refuse: []error{down, down}}
		if _, err := s.requests().Do(t.Context(), "k", hash, book, refuses); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want %s: a repeat may get another answer", err, fault.Unavailable)
		}
	}
}

// lender is keyed.CheckOuts with a loan that may be committed.
type lender struct {
	storage
	committed bool
	calls     []string
	fails     error // of what is called
}

func (l *lender) note(call string, lease checkout.KeyLease) (checkout.Lent, error) {
	l.calls = append(l.calls, call)
	if lease.LoanID != loanID || lease.ID != l.holder {
		return checkout.Lent{}, fmt.Errorf("%s under %+v", call, lease)
	}
	return checkout.Lent{Loan: []byte(`{"id":"l"}`)}, l.fails
}

func (l *lender) Lend(_ context.Context, _ checkout.Request, lease checkout.KeyLease) (checkout.Lent, error) {
	return l.note("check-out", lease)
}

func (l *lender) Committed(_ context.Context, _ checkout.Request, id string) (checkout.Lent, bool, error) {
	lent, err := l.note("committed", checkout.KeyLease{ID: l.holder, LoanID: id})
	return lent, l.committed, err
}

func TestRequests_CheckOut(t *testing.T) {
	t.Parallel()
	errLost := fault.New(fault.Unavailable, "lost")
	tests := map[string]*struct {
		lender lender
		want   []string
	}{
		"the first request lends": {lender{}, []string{"check-out"}},
		"the first request fails": {lender{fails: errLost}, []string{"check-out"}},
		"a take-over lends nothing before it knows the loan": {
			lender{storage: storage{hash: hash}, fails: errLost}, []string{"committed"},
		},
		"a take-over lends what is not committed": {
			lender{storage: storage{hash: hash}}, []string{"committed", "check-out"},
		},
		"a take-over answers with the loan that exists": {
			lender{storage: storage{hash: hash}, committed: true}, []string{"committed"},
		},
		"a repeat is answered like the first, unchecked": {lender{storage: storage{hash: hash, answer: &lent}}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tt.lender.requests()
			r.CheckOuts = &tt.lender
			got, err := r.CheckOut(t.Context(), "k", hash, book,
				func(l checkout.Lent, err error) (keyed.Answer, error) {
					if err != nil {
						return keyed.Answer{}, err
					}
					return keyed.Answer{LoanID: loanID, Loan: l.Loan}, nil
				})
			want := lent
			if tt.lender.fails != nil {
				want = keyed.Answer{}
			}
			if !errors.Is(err, tt.lender.fails) || !same(got, want) || !slices.Equal(tt.lender.calls, tt.want) {
				t.Errorf("got %+v, %v after %q, want %+v after %q", got, err, tt.lender.calls, want, tt.want)
			}
		})
	}
}
