// Package keyed makes a check-out that came with an Idempotency-Key
// repeatable: a repeat is answered like the first one, also while that still runs
// or when its instance died, and never lends twice.
//
// Storage keeps the keys. Whoever works on a check-out has the claim on its key,
// and renews it while it works; storage refuses the commit of one whose claim was
// taken over. The loan's id was chosen with the key, so whoever takes over first
// looks whether that loan exists.
package keyed

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	// lease is how long a claim outlives its holder: so long a repeat waits when
	// an instance died.
	lease = 3 * time.Second
	// renewal is the time between two renewals of a claim.
	renewal = lease / 3
	// pause is the time between two looks whether another request with the key has
	// ended.
	pause = 200 * time.Millisecond
	// settleTimeout bounds one call that ends a claim.
	settleTimeout = time.Second
)

// Storage keeps the keys. Faults beside the named ones leave open what happened.
type Storage interface {
	// ClaimCheckOut gives the caller the claim, or the answer of a check-out that is
	// finished. Faults: RequestRunning, KeyReused.
	ClaimCheckOut(ctx context.Context, r schemas.CheckOutRequest) (schemas.CheckOutClaim, error)
	// ChangeClaim renews a claim, gives it up, or sets the answer. Fault: ClaimLost.
	ChangeClaim(ctx context.Context, claimID string, change schemas.CheckOutClaimChange) error
}

// Claim is what somebody who works on a check-out has.
type Claim struct {
	ID     string
	LoanID string // the id that the loan must get
	// Taken says that somebody worked on it before: the loan may exist, and if it
	// does not by now, it never will by the work of others.
	Taken bool
}

// Work does a check-out under a claim. Faults: ClaimLost when storage refused the
// commit because somebody else has the claim; Invalid for a verdict that a repeat
// shall hear again; any other leaves it to a repeat to try again.
type Work func(ctx context.Context, c Claim) (schemas.CheckOutAnswer, error)

// Admit waits for a place in which to work, which leave gives back. Its faults
// say that there is none, now.
type Admit func(ctx context.Context) (leave func(), err error)

// Outcome is how a check-out with a key ended.
type Outcome string

// The outcomes.
const (
	Worked    Outcome = "worked"     // the first with its key
	TakenOver Outcome = "taken_over" // worked on what somebody else had begun
	Repeated  Outcome = "repeated"   // answered like the first one
	Reused    Outcome = "reused"     // refused: the key is that of another body
	Waited    Outcome = "waited"     // in vain, while another one worked
	Refused   Outcome = "refused"    // not begun, as it was not admitted
	Failed    Outcome = "failed"     // storage could not be asked
)

// Outcomes returns every outcome, in the order of declaration.
func Outcomes() []Outcome {
	return []Outcome{Worked, TakenOver, Repeated, Reused, Waited, Refused, Failed}
}

// Requests are the check-outs with a key. All fields are required.
type Requests struct {
	Storage Storage
	// Ended is told how each ended.
	Ended func(Outcome)
	Log   *slog.Logger
}

// Do answers a check-out with this key and body: by work, or as it was answered
// before. It takes up a place before it asks storage for anything, and gives the
// place up while it waits for another request with the key, so that repeats of a
// slow check-out keep no other check-out out.
//
// Faults: those of work and admit; KeyReused; RequestRunning when another one
// worked on it until ctx ended; what storage answered, and then nothing was lent
// or a repeat finds the loan.
func (r *Requests) Do(ctx context.Context, key string, body []byte, admit Admit, work Work) (schemas.CheckOutAnswer, error) {
	hash, err := Hash(body)
	if err != nil {
		return schemas.CheckOutAnswer{}, err
	}
	var running error
	for {
		req := schemas.CheckOutRequest{Key: key, BodyHash: hash, ClaimID: uuid.NewString(), LeaseMs: int(lease.Milliseconds())}
		answer, outcome, err := r.try(ctx, req, admit, work)
		switch {
		case fault.Is(err, fault.ClaimLost) && ctx.Err() == nil:
			continue // another one answers for both
		case outcome == Waited && ctx.Err() == nil:
			running = err
			wait(ctx, pause)
			continue
		case outcome == Failed && running != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			outcome, err = Waited, running
		}
		r.Ended(outcome)
		return answer, err
	}
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// try takes up a place, claims the check-out and works on it, or returns the
// answer that is kept. Faults: those of Do; RequestRunning, with Waited, when
// another one works on it now; ClaimLost when another one took it over.
func (r *Requests) try(ctx context.Context, req schemas.CheckOutRequest, admit Admit, work Work) (schemas.CheckOutAnswer, Outcome, error) {
	leave, err := admit(ctx)
	if err != nil {
		return schemas.CheckOutAnswer{}, failure(err), err
	}
	defer leave()
	got, err := r.claim(ctx, req)
	switch {
	case err != nil:
		return schemas.CheckOutAnswer{}, failure(err), err
	case got.Answer != nil:
		r.Log.InfoContext(ctx, "check-out answered like the first one with its key", "loan_id", got.LoanID, "status", got.Answer.Status)
		answer, err := again(*got.Answer)
		return answer, Repeated, err
	}
	answer, err := r.work(ctx, Claim{ID: req.ClaimID, LoanID: got.LoanID, Taken: got.Taken}, work)
	if fault.Is(err, fault.ClaimLost) {
		r.Log.WarnContext(ctx, "check-out was taken over by another request with its key", "loan_id", got.LoanID)
	}
	if got.Taken {
		return answer, TakenOver, err
	}
	return answer, Worked, err
}

// claim asks for the claim. A lost answer is asked for again at once: the same
// claim id gets the same claim.
func (r *Requests) claim(ctx context.Context, req schemas.CheckOutRequest) (schemas.CheckOutClaim, error) {
	got, err := r.Storage.ClaimCheckOut(ctx, req)
	if fault.Is(err, fault.Unavailable) {
		got, err = r.Storage.ClaimCheckOut(ctx, req)
	}
	return got, err
}

func failure(err error) Outcome {
	switch fault.CodeOf(err) {
	case fault.KeyReused:
		return Reused
	case fault.RequestRunning:
		return Waited
	case fault.Overloaded:
		return Refused
	default:
		return Failed
	}
}

// work does the work while the claim is kept, and ends the claim.
func (r *Requests) work(ctx context.Context, c Claim, work Work) (schemas.CheckOutAnswer, error) {
	stop := r.keep(ctx, c.ID)
	defer stop() // also when work panics; then the claim lapses
	answer, err := work(ctx, c)
	stop()
	refusal, verdict := refused(err)
	switch {
	case err == nil:
		if err := r.settle(ctx, c.ID, schemas.CheckOutClaimChange{Answer: &answer}); err != nil {
			// The loan is there, and a repeat will find it.
			r.Log.WarnContext(ctx, "answer of a check-out not kept", "loan_id", c.LoanID, "err", err)
		}
		return answer, nil
	case verdict:
		if err := r.settle(ctx, c.ID, schemas.CheckOutClaimChange{Answer: &refusal}); err != nil {
			return schemas.CheckOutAnswer{}, err // a repeat might be answered otherwise
		}
	case !fault.Is(err, fault.ClaimLost):
		now := 0
		if err := r.settle(ctx, c.ID, schemas.CheckOutClaimChange{LeaseMs: &now}); err != nil {
			r.Log.WarnContext(ctx, "claim not given up; it lapses", "loan_id", c.LoanID, "after", lease, "err", err)
		}
	}
	return schemas.CheckOutAnswer{}, err
}

// keep renews the claim until stop is called, whatever becomes of the caller: a
// commit goes on when the machine has left.
func (r *Requests) keep(ctx context.Context, claimID string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(renewal)
		defer ticker.Stop()
		ms := int(lease.Milliseconds())
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				rctx, done := context.WithTimeout(ctx, renewal)
				err := r.Storage.ChangeClaim(rctx, claimID, schemas.CheckOutClaimChange{LeaseMs: &ms})
				done()
				if err != nil && ctx.Err() == nil {
					r.Log.WarnContext(ctx, "claim on a check-out not renewed", "err", err)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// settle ends a claim on a context of its own, since it must happen also when the
// machine has left; once more if the first try fails.
func (r *Requests) settle(ctx context.Context, claimID string, change schemas.CheckOutClaimChange) error {
	var err error
	for range 2 {
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		err = r.Storage.ChangeClaim(sctx, claimID, change)
		cancel()
		if err == nil || fault.Is(err, fault.ClaimLost) {
			return err
		}
	}
	return err
}
