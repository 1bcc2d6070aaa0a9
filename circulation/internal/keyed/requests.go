// Package keyed makes a check-out with an idempotency key repeatable. A repeat is answered like the
// first request, also while that still runs or after its instance died, and never lends twice.
//
// Storage keeps the keys. The request that works on a check-out holds the lease of its key, and
// renews it meanwhile. Storage refuses the commit of a request whose lease was taken over. The
// loan's id is chosen with the key. So a request that takes over first checks whether that loan
// exists.
package keyed

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

const (
	// leaseDuration is how long a lease outlives its holder, and so how long a repeat
	// waits after an instance died.
	leaseDuration = 3 * time.Second
	// renewal is the time between two renewals of a lease.
	renewal = leaseDuration / 3
	// pause is the time between two tries, while another request with the key may run.
	pause = 200 * time.Millisecond
	// settleTimeout bounds one call that ends a lease.
	settleTimeout = time.Second
)

// Storage keeps the keys. After any fault other than the named ones, the call may have happened.
type Storage interface {
	// LeaseKey gives the caller the lease of a key. A finished check-out cannot be leased: then the answer
	// is not nil. Faults: RequestRunning, KeyReused.
	LeaseKey(ctx context.Context, r schemas.KeyLeaseRequest) (checkout.KeyLease, *Answer, error)
	// RenewLease lets a lease end after d; 0 gives it up. Fault: KeyLeaseLost.
	RenewLease(ctx context.Context, leaseID string, d time.Duration) error
	// AnswerLease ends a lease: repeats get the answer. Fault: KeyLeaseLost.
	AnswerLease(ctx context.Context, leaseID string, a Answer) error
}

// CheckOuts lends items.
type CheckOuts interface {
	// Admit waits for a place, which leave frees. Fault: Overloaded.
	Admit(ctx context.Context, req checkout.Request) (leave func(), err error)
	// Fail notes that a check-out with a place, which began then, ended with err before Lend.
	Fail(ctx context.Context, req checkout.Request, lease checkout.KeyLease, began time.Time, err error)
	// Lend lends. The caller has a place.
	Lend(ctx context.Context, req checkout.Request, lease checkout.KeyLease) (checkout.Lent, error)
	// Committed returns the check-out that made the loan; false if there is none.
	Committed(ctx context.Context, req checkout.Request, loanID string) (checkout.Lent, bool, error)
}

// Answer is how a check-out ended.
type Answer struct {
	LoanID string
	// Loan is the loan as the front describes it, nil if the check-out was refused.
	Loan json.RawMessage
	// Refused means that Loan describes no loan, but why there is none.
	Refused bool
	// Refusal has the reasons of a refusal.
	Refusal []fault.Detail
	// Status is the HTTP status of an answer that storage kept, for the log.
	Status int
}

// Work does a check-out under a lease. After an error that is none of these faults a repeat tries
// again.
//
// Faults: KeyLeaseLost if storage refused the commit because another request holds the lease; GivenUp
// if another request that held it has given the loan up; Invalid for a refusal, which repeats get too.
type Work func(ctx context.Context, l checkout.KeyLease) (Answer, error)

// Outcome is how a request with a key ended.
type Outcome string

// The outcomes.
const (
	Worked    Outcome = "worked"     // the first with its key
	TakenOver Outcome = "taken_over" // worked on what another request had begun
	Repeated  Outcome = "repeated"   // answered like the first one
	Reused    Outcome = "reused"     // refused: the key is that of another body
	Waited    Outcome = "waited"     // until the time-out, while another request worked
	Refused   Outcome = "refused"    // not begun, as it was not admitted
	Failed    Outcome = "failed"     // storage did not answer
)

// Outcomes returns every outcome, in the order of declaration.
func Outcomes() []Outcome {
	return []Outcome{Worked, TakenOver, Repeated, Reused, Waited, Refused, Failed}
}

// Requests are the check-outs with a key. All fields are required.
type Requests struct {
	Storage   Storage
	CheckOuts CheckOuts
	// Ended is called with the outcome of each request.
	Ended func(Outcome)
	Log   *slog.Logger
}

// CheckOut answers a check-out with this key: it lends, or returns the answer that the key got
// before. hash stands for the meaning of the request: a repeat has the same one. describe makes
// the front's answer of a loan, which storage keeps, and passes an error on.
//
// Faults: those of CheckOuts; KeyReused if the key came with another hash; RequestRunning
// if another request with the key worked on it until ctx ended. After storage's faults either
// nothing was lent, or a repeat finds the loan.
func (r *Requests) CheckOut(ctx context.Context, key, hash string, req checkout.Request, describe func(checkout.Lent, error) (Answer, error)) (Answer, error) {
	return r.Do(ctx, key, hash, req, func(ctx context.Context, l checkout.KeyLease) (Answer, error) {
		return describe(r.Lend(ctx, req, l))
	})
}

// Lend lends the loan of a lease, unless another request that held it has done so. It is the work of
// a check-out.
func (r *Requests) Lend(ctx context.Context, req checkout.Request, l checkout.KeyLease) (checkout.Lent, error) {
	if l.Taken {
		began := time.Now()
		lent, done, err := r.CheckOuts.Committed(ctx, req, l.LoanID)
		if err != nil {
			r.CheckOuts.Fail(ctx, req, l, began, err)
		}
		if err != nil || done {
			return lent, err
		}
	}
	return r.CheckOuts.Lend(ctx, req, l)
}

// Do answers a request with this key and hash: by work, or with the kept answer. It waits for a
// place before it calls storage. It frees the place while it waits for another request with the
// key, so that repeats of a slow check-out keep no other check-out out.
//
// Its faults are those of CheckOut, with work in place of Lend.
func (r *Requests) Do(ctx context.Context, key, hash string, req checkout.Request, work Work) (Answer, error) {
	var running error
	for {
		began := time.Now()
		asked := schemas.KeyLeaseRequest{Key: key, BodyHash: hash, LeaseID: uuid.NewString(), LeaseMs: int(leaseDuration.Milliseconds())}
		answer, outcome, err := r.tryOnce(ctx, asked, req, work)
		switch {
		case outcome == Waited:
			running = err
		case outcome == Failed && running == nil: // else the other request may go on
			r.CheckOuts.Fail(ctx, req, checkout.KeyLease{}, began, err)
		}
		// The other request answers for both. After GivenUp the next lease names another loan.
		if outcome == Waited || fault.Is(err, fault.KeyLeaseLost) || fault.Is(err, fault.GivenUp) {
			if pace.Wait(ctx, pause) {
				continue
			}
			outcome, err = Failed, ctx.Err()
		}
		if (outcome == Failed || outcome == Refused) && running != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			outcome, err = Waited, running
		}
		r.Ended(outcome)
		return answer, err
	}
}

// tryOnce waits for a place, leases the key and works on it, or returns the kept
// answer. Faults: those of Do; RequestRunning, with Waited, if another request works on it
// now; KeyLeaseLost if another request took it over.
func (r *Requests) tryOnce(ctx context.Context, asked schemas.KeyLeaseRequest, req checkout.Request, work Work) (Answer, Outcome, error) {
	leave, err := r.CheckOuts.Admit(ctx, req)
	if err != nil {
		return Answer{}, Refused, err
	}
	defer leave()
	lease, kept, err := r.leaseKey(ctx, asked)
	switch {
	case err != nil:
		return Answer{}, outcomeOf(err), err
	case kept != nil:
		r.Log.InfoContext(ctx, "check-out answered like the first one with its key", "loan_id", kept.LoanID, "status", kept.Status)
		if len(kept.Refusal) > 0 {
			return Answer{}, Repeated, fault.Validation(kept.Refusal...)
		}
		return *kept, Repeated, nil
	}
	answer, err := r.doWork(ctx, lease, work)
	if fault.Is(err, fault.KeyLeaseLost) {
		r.Log.WarnContext(ctx, "check-out was taken over by another request with its key", "loan_id", lease.LoanID)
	}
	if lease.Taken {
		return answer, TakenOver, err
	}
	return answer, Worked, err
}

// leaseKey asks for the lease. It repeats the call at once if the answer was lost: the same
// lease id gets the same lease.
func (r *Requests) leaseKey(ctx context.Context, req schemas.KeyLeaseRequest) (checkout.KeyLease, *Answer, error) {
	lease, kept, err := r.Storage.LeaseKey(ctx, req)
	if fault.Is(err, fault.Unavailable) {
		return r.Storage.LeaseKey(ctx, req)
	}
	return lease, kept, err
}

func outcomeOf(err error) Outcome {
	switch fault.CodeOf(err) {
	case fault.KeyReused:
		return Reused
	case fault.RequestRunning:
		return Waited
	default:
		return Failed
	}
}

// doWork does the work while it renews the lease, and ends the lease.
func (r *Requests) doWork(ctx context.Context, l checkout.KeyLease, work Work) (Answer, error) {
	stop := r.renewLease(ctx, l.ID)
	defer stop() // also if work panics; then the lease lapses
	answer, err := work(ctx, l)
	stop()
	refusal := refusalOf(err)
	switch {
	case err == nil:
		if err := r.answerLease(ctx, l.ID, answer); err != nil {
			if answer.Refused {
				return Answer{}, err // a repeat may get another answer
			}
			// The loan exists, and a repeat will find it.
			r.Log.WarnContext(ctx, "answer of a check-out not kept", "loan_id", l.LoanID, "err", err)
		}
		return answer, nil
	case len(refusal) > 0:
		if err := r.answerLease(ctx, l.ID, Answer{LoanID: l.LoanID, Refusal: refusal}); err != nil {
			return Answer{}, err // a repeat may get another answer
		}
	case !fault.Is(err, fault.KeyLeaseLost):
		giveUp := func(ctx context.Context) error { return r.Storage.RenewLease(ctx, l.ID, 0) }
		if err := tryTwice(ctx, giveUp); err != nil && !fault.Is(err, fault.KeyLeaseLost) { // another request may have it
			r.Log.WarnContext(ctx, "key lease not given up; it lapses", "loan_id", l.LoanID, "after", leaseDuration, "err", err)
		}
	}
	return Answer{}, err
}

// refusalOf returns the reasons of a refused check-out; none for any other error. A lock that was
// not acquired or a storage that was not reached is no refusal: a repeat may succeed.
func refusalOf(err error) []fault.Detail {
	var f *fault.Error
	switch {
	case !errors.As(err, &f) || f.Code != fault.Invalid:
		return nil
	case len(f.Details) > 0:
		return f.Details
	}
	return []fault.Detail{{Message: f.Msg, Code: string(f.Code)}}
}

// renewLease renews the lease until stop is called, also after the caller has left: a
// commit goes on without it.
func (r *Requests) renewLease(ctx context.Context, leaseID string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range pace.Every(ctx, renewal, renewal) {
			if err := r.tryRenewal(ctx, leaseID); err != nil && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "key lease not renewed", "err", err)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (r *Requests) tryRenewal(ctx context.Context, leaseID string) (err error) {
	defer fault.Recover(&err)
	ctx, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	return r.Storage.RenewLease(ctx, leaseID, leaseDuration)
}

func (r *Requests) answerLease(ctx context.Context, leaseID string, a Answer) error {
	return tryTwice(ctx, func(ctx context.Context) error { return r.Storage.AnswerLease(ctx, leaseID, a) })
}

// tryTwice makes a call that ends a lease on a context of its own, since it must also happen after
// the caller has left. It repeats the call if that fails.
func tryTwice(ctx context.Context, endLease func(context.Context) error) error {
	var err error
	for range 2 {
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		err = endLease(sctx)
		cancel()
		if err == nil || fault.Is(err, fault.KeyLeaseLost) {
			return err
		}
	}
	return err
}
