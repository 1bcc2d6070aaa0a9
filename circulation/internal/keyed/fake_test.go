package keyed_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const loanID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

const hash = "1a2b"

var book = checkout.Request{ItemBarcode: "b"}

var lent = keyed.Answer{LoanID: loanID, Loan: json.RawMessage(`{"id":"l"}`)}

// storage keeps one key in memory, and has places for check-outs; its clock is the bubble's.
type storage struct {
	keyed.CheckOuts // lends nothing

	mu      sync.Mutex
	hash    string
	holder  string
	until   time.Time
	answer  *keyed.Answer
	leases  []string // the ids of the granted leases
	renewed int
	panics  bool          // in the next renewal
	slow    time.Duration // of each renewal, whatever its context
	given   int           // times the lease was given up
	lose    []error       // of the next leases: granted, but the answer gets lost
	refuse  []error       // of the next changes
	ended   []keyed.Outcome
	inside  int     // places occupied now
	late    int     // calls of Admit on a context that has ended
	full    error   // of every call of Admit
	failed  []error // of check-outs that ended before Lend
}

func (s *storage) Admit(ctx context.Context, _ checkout.Request) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		s.late++
	}
	if err := cmp.Or(ctx.Err(), s.full); err != nil {
		return nil, err
	}
	s.inside++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inside--
	}, nil
}

func (s *storage) Fail(_ context.Context, _ checkout.Request, _ checkout.KeyLease, _ time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, err)
}

func (s *storage) LeaseKey(ctx context.Context, r schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	end := time.Now().Add(time.Duration(r.WaitMs) * time.Millisecond)
	for {
		lease, kept, err := s.lease(r)
		if !fault.Is(err, fault.RequestRunning) || !time.Now().Before(end) {
			return lease, kept, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return lease, nil, ctx.Err()
		}
	}
}

func (s *storage) lease(r schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := checkout.KeyLease{ID: r.LeaseID, LoanID: loanID, Taken: s.hash != ""}
	switch {
	case r.Key != "k":
		return checkout.KeyLease{}, nil, fmt.Errorf("the key is %q", r.Key)
	case s.hash != "" && s.hash != r.BodyHash:
		return checkout.KeyLease{}, nil, fault.New(fault.KeyReused, "another body")
	case s.answer != nil:
		return lease, s.answer, nil
	case s.holder != r.LeaseID && time.Now().Before(s.until):
		return checkout.KeyLease{}, nil, fault.New(fault.RequestRunning, "running")
	}
	s.leases = append(s.leases, r.LeaseID)
	s.hash, s.holder, s.until = r.BodyHash, r.LeaseID, time.Now().Add(time.Duration(r.LeaseMs)*time.Millisecond)
	if len(s.lose) > 0 {
		err := s.lose[0]
		s.lose = s.lose[1:]
		return checkout.KeyLease{}, nil, err
	}
	return lease, nil, nil
}

func (s *storage) RenewLease(ctx context.Context, leaseID string, lease time.Duration) error {
	if s.slow > 0 && lease > 0 {
		<-time.After(s.slow)
		ctx = context.WithoutCancel(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		s.panics = false
		panic("a bug")
	}
	if err := s.checkLease(ctx, leaseID); err != nil {
		return err
	}
	if lease == 0 {
		s.given++
		s.until = time.Time{}
		return nil
	}
	s.renewed++
	s.until = time.Now().Add(lease)
	return nil
}

func (s *storage) AnswerLease(ctx context.Context, leaseID string, a keyed.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLease(ctx, leaseID); err != nil {
		return err
	}
	s.answer = &a
	return nil
}

// checkLease returns why the lease cannot be changed. s.mu is held.
func (s *storage) checkLease(ctx context.Context, leaseID string) error {
	if _, bounded := ctx.Deadline(); !bounded && s.slow == 0 {
		return errors.New("the call has no time-out")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(s.refuse) > 0 {
		err := s.refuse[0]
		if s.refuse = s.refuse[1:]; err != nil {
			return err
		}
	}
	if s.holder != leaseID || s.answer != nil {
		return fault.New(fault.KeyLeaseLost, "lost")
	}
	return nil
}

func (s *storage) requests() *keyed.Requests {
	return &keyed.Requests{
		Storage: s, CheckOuts: s, Log: slog.New(slog.DiscardHandler),
		Ended: func(o keyed.Outcome) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, o)
		},
	}
}

// lends is work that lends.
func lends(context.Context, checkout.KeyLease) (keyed.Answer, error) { return lent, nil }

// never is work that must not happen.
func never(t *testing.T) keyed.Work {
	return func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
		t.Error("the check-out was worked on again")
		return keyed.Answer{}, nil
	}
}

func fails(err error) keyed.Work {
	return func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
		return keyed.Answer{}, err
	}
}

func same(got, want keyed.Answer) bool {
	return got.LoanID == want.LoanID && string(got.Loan) == string(want.Loan)
}

// wantLent does a check-out that must be answered as lent.
func (s *storage) wantLent(t *testing.T, work keyed.Work) {
	t.Helper()
	if got, err := s.requests().Do(t.Context(), "k", hash, book, work); err != nil || !same(got, lent) {
		t.Errorf("got %+v, %v, want %+v", got, err, lent)
	}
}
