// Package checkout lends: it validates a check-out, takes the patron's lock, commits with a recount
// under that lock, and releases it.
package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	fast "github.com/segmentio/encoding/json"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Service checks items out. All fields are required.
type Service struct {
	Admission Admission
	Library   Library
	Locker    Locker
	Committer Committer
	Settings  Settings
	Observer  Observer
	Log       *slog.Logger
	// Now is the time for loan dates and by which a patron's expiration is judged. No lock is
	// judged by it.
	Now func() time.Time
}

// releaseTimeout bounds the wait for a release. A lock that is not released is outdated after its
// TTL.
const releaseTimeout = 1500 * time.Millisecond

// Lent is a check-out that happened: the stored loan, and the records that the answer is made of.
type Lent struct {
	LoanID string
	Loan   json.RawMessage
	Copy   library.Copy
	User   library.User
	Group  library.Group
	Policy policy.LoanPolicy
}

// CheckOut waits for a place, lends an item to a patron, and gives the place back.
//
// Faults: Overloaded; those of Lend.
func (s *Service) CheckOut(ctx context.Context, req Request) (Lent, error) {
	a := &attempt{service: s, plan: &plan{req: req}, start: time.Now()}
	var lent Lent
	leave, err := s.Admission.Enter(ctx, req.UserBarcode)
	if err == nil {
		defer leave()
		lent, err = a.checkOut(ctx, req)
	}
	a.reportEnding(ctx, err)
	return lent, err
}

// Admit waits for a place for the check-out, which leave gives back. A check-out that gets none has
// ended, and is observed and logged like any other. Callers with work to do before the check-out
// call Admit first, and then Lend. Faults: those of Admission.
func (s *Service) Admit(ctx context.Context, req Request) (leave func(), err error) {
	a := &attempt{service: s, plan: &plan{req: req}, start: time.Now()}
	leave, err = s.Admission.Enter(ctx, req.UserBarcode)
	if err != nil {
		a.reportEnding(ctx, err)
	}
	return leave, err
}

// Fail notes that a check-out which was admitted ended with err before it came to Lend. It began then, and
// is observed and logged like any other.
func (s *Service) Fail(ctx context.Context, req Request, lease KeyLease, began time.Time, err error) {
	a := &attempt{service: s, plan: &plan{req: req, loan: library.Loan{ID: lease.LoanID}}, start: began}
	a.reportEnding(ctx, err)
}

// Lend lends an item to a patron. The caller has a place: see Admit.
//
// Faults: Invalid with FOLIO's list of everything that is wrong, the item limit included;
// LockNotAcquired; KeyLeaseLost if another request with its Idempotency-Key took it over; GivenUp if
// such a request settled it as not lent;
// OutcomeUnknown if storage was lost and the loan may exist; Internal for faults of stored
// configuration; any other answer of storage.
//
// Nothing is written before the lock is held. Everything is written in one transaction that the
// lock fences (POST /loan-storage/check-outs).
func (s *Service) Lend(ctx context.Context, req Request, lease KeyLease) (Lent, error) {
	a := &attempt{service: s, plan: &plan{req: req}, lease: lease, start: time.Now()}
	lent, err := a.checkOut(ctx, req)
	a.reportEnding(ctx, err)
	return lent, err
}

// attempt is one check-out under way.
type attempt struct {
	service  *Service
	start    time.Time
	reached  time.Time // the last step, at first the beginning
	lease    KeyLease
	plan     *plan
	settings settings.Settings
	lockID   string // "" while no lock is held
	// turn makes the commit take the lock itself; nil while it does not.
	turn    *schemas.LockTurn
	hadTurn bool           // a commit tried that
	waited  *time.Duration // for the lock; nil if none was asked for
	repeats int            // commits sent again
	// unsettled means that a commit was sent whose outcome is unknown: it may still arrive.
	unsettled bool
	// byRepeat means that a repeat, which took the key lease over, made the loan.
	byRepeat bool
	// unfenced is why the release of its lock does not keep such a commit from happening; nil if it
	// does.
	unfenced error
}

// checkOut judges the request and lends.
func (a *attempt) checkOut(ctx context.Context, req Request) (Lent, error) {
	a.reached = time.Now()
	wrong := library.CheckUUID("servicePointId", req.ServicePointID)
	if strings.TrimSpace(req.ServicePointID) == "" {
		wrong = fault.List{req.NewMissing(library.CodeMissing, "servicePointId", "Check out must be performed at a service point")}
	}
	p, err := a.service.judgeRequest(ctx, req, wrong)
	a.plan = p
	if err != nil {
		return Lent{}, err
	}
	if err := p.wrong.Err(); err != nil {
		return Lent{}, err
	}
	p.loan.ID = cmp.Or(a.lease.LoanID, uuid.NewString()) // chosen once, so that a repeated commit is recognised
	a.markReached(ctx, Validated)
	a.settings = a.service.Settings.Current(ctx)
	return a.lend(ctx)
}

// countRepeat notes that the commit is repeated because of err.
func (a *attempt) countRepeat(err error) {
	a.repeats++
	a.service.Observer.Repeated(string(fault.CodeOf(err)))
}

// lend lends, and settles a failure if a commit that was sent before it may still arrive.
func (a *attempt) lend(ctx context.Context) (Lent, error) {
	lent, err := a.lendInTime(ctx)
	if !a.unsettled {
		return lent, err
	}
	result, err := a.settleOutcome(context.WithoutCancel(ctx), err)
	return a.noteCommitted(ctx, result, err)
}

// lendInTime takes the lock, lends and releases. It repeats that if the lock was lost or the settings
// changed under it, while the wait budget lasts. It follows the first change of settings also
// without a budget.
func (a *attempt) lendInTime(ctx context.Context) (Lent, error) {
	w, start, followed := &waits{remaining: a.settings.Waits}, time.Now(), false
	for {
		lent, err := a.lendOnce(ctx, w)
		changed := fault.Is(err, fault.SettingsChanged)
		if !changed && !fault.Is(err, fault.LockLost) {
			return lent, err
		}
		allowed := changed && !followed || time.Since(start) <= a.settings.WaitBudget()
		switch {
		case errors.Is(ctx.Err(), context.Canceled): // the machine left
			return Lent{}, ctx.Err()
		case !allowed || ctx.Err() != nil:
			return Lent{}, a.newLockNotAcquired(err)
		}
		if changed {
			followed = true
			a.refreshSettings(ctx, w)
		}
		a.countRepeat(err)
	}
}

// refreshSettings reads the settings from storage, and their waits if none was used.
func (a *attempt) refreshSettings(ctx context.Context, w *waits) {
	locked := a.settings.Enabled
	a.settings = a.service.Settings.Refresh(ctx)
	if !locked {
		w.remaining = a.settings.Waits
	}
}

// lendOnce takes the lock, commits and releases. The first commit tries to take a free lock itself.
// Otherwise the commit begins after the grant. Storage counts again in it: only then does the count see
// every loan made under earlier locks.
func (a *attempt) lendOnce(ctx context.Context, w *waits) (Lent, error) {
	if a.settings.Enabled {
		if err := ctx.Err(); err != nil {
			return Lent{}, err
		}
		q := a.beginAcquisition(ctx)
		defer q.end() // also after a panic
		if !a.hadTurn {
			if result, err := a.commitInTurn(ctx, q, w); !isLockMissing(err) {
				return a.noteCommitted(ctx, result, err)
			}
		}
		id, err := a.acquireLock(ctx, q, w)
		if err != nil {
			return Lent{}, err
		}
		a.lockID = id
		defer a.releaseLock(ctx)
		a.markReached(ctx, Locked)
	} else if a.settings.Version == "" {
		// Storage refuses a commit that shows neither a lock nor a version.
		return Lent{}, fault.New(fault.Unavailable, "The check-out lock's settings could not be read from storage")
	}
	if err := ctx.Err(); err != nil {
		return Lent{}, err // nothing is written for a machine that left
	}
	result, err := a.commitPlan(ctx)
	return a.noteCommitted(ctx, result, err)
}

// noteCommitted returns what a commit lent, or its error.
func (a *attempt) noteCommitted(ctx context.Context, result schemas.CheckOutResult, err error) (Lent, error) {
	if err != nil {
		return Lent{}, err
	}
	a.byRepeat, a.unsettled = result.Repeated && !a.unsettled, false
	a.markReached(ctx, Committed)
	if result.LockReleased {
		a.noteReleased(ctx)
	}
	lent := newLent(a.plan.loan.ID, result.Loan, &a.plan.facts, a.plan.chosen.policy)
	lent.Copy.Item = a.readLentItem(ctx, result.Item)
	return lent, nil
}

// releaseLock gives the lock back, on a context of its own because the machine may have left. The
// release waits for a commit in flight, and fences off any later one. While an outcome is unknown it
// has to survive a crash of the database, because a lock that comes back does not fence.
func (a *attempt) releaseLock(ctx context.Context) {
	if a.lockID == "" {
		return
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	release := a.service.Locker.Release
	if a.unsettled {
		release = a.service.Locker.ReleaseDurably
	}
	err := release(rctx, a.lockID)
	if err != nil {
		a.service.Log.WarnContext(ctx, "lock not released; it will be outdated", "patron", redact.Mask(a.plan.loan.UserID),
			"lock_id", a.lockID, "ttl", a.settings.TTL, "err", err)
	}
	if a.unsettled {
		a.unfenced = errors.Join(a.unfenced, err)
	}
	a.noteReleased(ctx)
}

func (a *attempt) noteReleased(ctx context.Context) {
	a.lockID = ""
	a.markReached(ctx, Released)
}

// newLent returns a stored loan with the records that belong to it.
func newLent(loanID string, loan json.RawMessage, facts *library.Facts, p policy.LoanPolicy) Lent {
	return Lent{LoanID: loanID, Loan: loan, Copy: facts.Copy(), User: facts.User, Group: facts.Group, Policy: p}
}

// readLentItem returns the plan's item with the status that storage answered; without one, with that of
// a check-out. It cannot fail, because the item is lent by now.
func (a *attempt) readLentItem(ctx context.Context, answered json.RawMessage) library.Item {
	var stored struct {
		Status library.Status `json:"status"`
	}
	stored.Status.Name = library.StatusCheckedOut
	if len(answered) > 0 {
		if err := fast.Unmarshal(answered, &stored); err != nil {
			a.service.Log.ErrorContext(ctx, "storage answered an item that cannot be read", "err", err)
		}
	}
	item := a.plan.facts.Item
	item.Status, item.InTransitDestinationServicePointID = stored.Status, ""
	return item
}

// Committed returns the check-out that made the loan, as CheckOut would have answered it; false if
// there is no such loan. The records around the loan are read anew. They are empty if the request's
// barcodes no longer name them. Fault: OutcomeUnknown if the loan may exist, also if it does and the
// records cannot be read.
func (s *Service) Committed(ctx context.Context, req Request, loanID string) (Lent, bool, error) {
	rctx, cancel := context.WithTimeout(ctx, library.CommitTimeout)
	defer cancel()
	loan, exists, err := fault.Found(s.Committer.CommittedLoan(rctx, loanID))
	switch {
	case err != nil:
		return Lent{}, false, newOutcomeUnknown(loanID, err)
	case !exists:
		return Lent{}, false, nil
	}
	facts, err := library.ReadFacts(ctx, s.Library, req.subjects())
	if err != nil {
		return Lent{}, false, newOutcomeUnknown(loanID, fmt.Errorf("reading what belongs to the loan: %w", err))
	}
	var stored library.Loan
	if err := json.Unmarshal(loan, &stored); err != nil {
		return Lent{}, false, newOutcomeUnknown(loanID, fmt.Errorf("reading the loan: %w", err))
	}
	lentBy, _, err := fault.Found(s.Library.LoanPolicy(ctx, stored.LoanPolicyID))
	if err != nil {
		return Lent{}, false, newOutcomeUnknown(loanID, fmt.Errorf("reading the loan's policy: %w", err))
	}
	return newLent(loanID, loan, &facts, lentBy), true, nil
}

// markReached reports a step to the observer, with the time since the one before.
func (a *attempt) markReached(ctx context.Context, step Step) {
	a.service.Observer.Reached(ctx, step, time.Since(a.reached))
	a.reached = time.Now()
}

// markPassed is markReached for a step that was reached so long after the one before.
func (a *attempt) markPassed(ctx context.Context, step Step, took time.Duration) {
	a.service.Observer.Reached(ctx, step, took)
	a.reached = a.reached.Add(took)
}
