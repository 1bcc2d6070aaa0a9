package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	fast "github.com/segmentio/encoding/json"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/schemas/span"
)

// settleTimeout bounds what settles a commit with an unknown outcome. With library.CommitsTimeout,
// releaseTimeout and 2 s to settle an Idempotency-Key it stays below config.FinishMargin.
const settleTimeout = 2 * time.Second

// commitInTurn commits with a lock that the commit takes itself if it is free, or becomes free soon. If
// not, isLockMissing holds, nothing is written, and q goes on.
func (a *attempt) commitInTurn(ctx context.Context, q *acquisition, w *waits) (schemas.CheckOutResult, error) {
	a.hadTurn = true
	a.turn = &schemas.LockTurn{AcquisitionID: q.req.AcquisitionID, WaitMs: int(w.limitTurn().Milliseconds())}
	result, err := a.commitPlan(ctx)
	a.turn = nil
	wait := time.Since(q.began)
	switch {
	case isHeldByAnother(err):
		w.spend(wait)
		return result, err
	case isLockMissing(err):
		return result, err
	case err == nil:
		wait = time.Duration(result.LockWaitMs * float64(time.Millisecond))
		a.markPassed(ctx, Locked, wait)
		result.LockReleased = true // also by a repeat
	}
	a.noteWait(q, wait, err == nil || !library.IsUnknown(err))
	return result, err
}

// isLockMissing reports whether a commit found the lock held, or storage is of an earlier build and
// takes no lock in a commit.
func isLockMissing(err error) bool { return isHeldByAnother(err) || fault.Is(err, fault.LockLost) }

// commitPlan writes the check-out. From here on the machine's connection does not matter: a machine
// that leaves now finds its loan when it asks again.
//
// An item or a queue that changed since the validation is read again, once.
func (a *attempt) commitPlan(ctx context.Context) (schemas.CheckOutResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), library.CommitsTimeout)
	defer cancel()
	result, err := a.sendPlan(ctx)
	if fault.Is(err, fault.ItemChanged) || fault.Is(err, fault.RequestChanged) {
		a.countRepeat(err)
		if fault.Is(err, fault.ItemChanged) {
			a.unsettled, a.unfenced = false, nil // the earlier commits show the item's old version, which lends no more
		}
		if err = a.reviseItem(ctx); err == nil {
			result, err = a.sendPlan(ctx)
		}
	}
	return result, err
}

// reviseItem judges the item and its queue as storage has them now. It judges policy and limit too,
// because the item's type or location may have changed. It replaces the plan only if the item may
// still be lent.
func (a *attempt) reviseItem(ctx context.Context) error {
	p := *a.plan
	var err error
	if p.facts, err = p.facts.ReloadItem(ctx, a.service.Library, ""); err != nil {
		return err
	}
	if err := a.service.judgeItem(ctx, &p); err != nil {
		return err
	}
	if err := p.wrong.Err(); err != nil {
		return err
	}
	a.plan = &p
	return nil
}

// sendPlan sends the commit, and repeats it while its outcome is unknown. Under a lock the limits go
// with the commit, and a recount that refuses is answered as the first count's refusal.
func (a *attempt) sendPlan(ctx context.Context) (schemas.CheckOutResult, error) {
	p := a.plan
	loan, err := fast.Marshal(p.loan)
	if err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("writing the loan: %w", err)
	}
	body := schemas.CheckOut{
		Loan: loan, ItemVersion: p.facts.Item.Version, LockID: a.lockID, TakeLock: a.turn, FilledRequestID: p.fills,
		TitleLevel: p.facts.TitleLevel, KeyLeaseID: a.lease.ID, Recalled: &p.loan.DueDateChangedByRecall,
		StatusOnly: true,
	}
	if a.turn != nil {
		body.LockID = uuid.NewString()
	}
	body.ReleaseLock = body.LockID != ""
	limits := p.listLimits(ctx)
	if body.ReleaseLock {
		body.Limits = convert.All(limits, func(l countedLimit) schemas.LoanLimit { return l.limit })
	}
	if !body.ReleaseLock || a.settings.Announced {
		body.SettingsVersion = a.settings.Version
	}
	send := func(ctx context.Context) (schemas.CheckOutResult, error) {
		return a.service.Committer.CheckOut(ctx, body)
	}
	sending, end := span.Start(ctx, "commit")
	result, err := library.RetryCommit(sending, send, func(err error) {
		a.noteUnsettled()
		a.countRepeat(err)
		a.service.Log.WarnContext(ctx, "outcome of the commit unknown; sending it again", "loan_id", p.loan.ID,
			"patron", redact.Mask(p.loan.UserID), "err", err)
	})
	end(&err)
	if fault.Is(err, fault.LimitReached) {
		return result, limits.findReached(err).Err()
	}
	if err != nil && library.IsUnknown(err) {
		a.noteUnsettled()
	}
	return result, err
}

var errNoLock = errors.New("the commit had no lock")

func (a *attempt) noteUnsettled() {
	a.unsettled = true
	if a.lockID == "" {
		a.unfenced = errNoLock
	}
}

// settleOutcome finds out whether the loan exists, and returns cause, why the check-out failed, if it
// does not. Storage waits for a commit in flight and refuses any later one, so after its answer the
// loan exists or never will. The locks were released before, because a storage of an earlier build may
// still have the commit, and knows no other fence.
//
// A check-out whose key lease was lost is another request's, so it is only read.
func (a *attempt) settleOutcome(ctx context.Context, cause error) (schemas.CheckOutResult, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if fault.Is(cause, fault.KeyLeaseLost) {
		return a.readOutcome(ctx, cause)
	}
	loanID := a.plan.loan.ID
	send := func(ctx context.Context) (schemas.SettledCheckOut, error) {
		return a.service.Committer.SettleCheckOut(ctx, loanID)
	}
	settled, err := library.RetryCommit(ctx, send, func(err error) {
		a.service.Log.WarnContext(ctx, "check-out not settled; trying again", "loan_id", loanID, "err", err)
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return a.readOutcome(ctx, cause)
	case err != nil:
		return schemas.CheckOutResult{}, newOutcomeUnknown(loanID, errors.Join(cause, err))
	case settled.GivenUp:
		return schemas.CheckOutResult{}, newNotLent(cause)
	}
	return schemas.CheckOutResult{Loan: settled.Loan, Item: settled.Item}, nil
}

// readOutcome is settleOutcome with a storage of an earlier build. After the locks were released, the
// loan exists or never will. Without a lock a late commit stays possible, so a missing loan proves
// nothing.
func (a *attempt) readOutcome(ctx context.Context, cause error) (schemas.CheckOutResult, error) {
	loan, err := a.service.Committer.CommittedLoan(ctx, a.plan.loan.ID)
	switch {
	case err == nil:
		return schemas.CheckOutResult{Loan: loan}, nil
	case fault.Is(err, fault.NotFound) && (a.unfenced == nil || fault.Is(cause, fault.KeyLeaseLost)):
		return schemas.CheckOutResult{}, newNotLent(cause)
	}
	return schemas.CheckOutResult{}, newOutcomeUnknown(a.plan.loan.ID, errors.Join(cause, a.unfenced, err))
}

// newNotLent returns the fault of a check-out that failed with cause and certainly did not lend.
func newNotLent(cause error) error {
	if !library.IsUnknown(cause) || fault.Is(cause, fault.LockNotAcquired) {
		return cause
	}
	code := fault.Internal
	if fault.Is(cause, fault.Unavailable) || fault.Is(cause, fault.Timeout) || errors.Is(cause, context.DeadlineExceeded) {
		code = fault.Unavailable // a repeat may outlast an outage; anything else is a defect
	}
	return fault.Wrap(cause, code, "The item was not lent: storage failed")
}

// newOutcomeUnknown returns the fault of a check-out whose loan may exist.
func newOutcomeUnknown(loanID string, cause error) error {
	return &fault.Error{
		Code: fault.OutcomeUnknown,
		Msg:  "Storage was lost: it is not known yet whether the item was lent",
		Details: fault.List{fault.Refusal(string(fault.OutcomeUnknown),
			"Storage was lost: it is not known yet whether the item was lent. The loan, if there is one, has this id",
			fault.Param("loanId", loanID))},
		Err: cause,
	}
}

// countedLimit is a limit that the commit counts, with the refusal of a check-out beyond it.
type countedLimit struct {
	limit   schemas.LoanLimit
	refusal fault.Detail
}

type countedLimits []countedLimit

// listLimits returns the limits of the patron's group and of the policy that staff do not lift. They
// are in the order of FOLIO's errors.
func (p *plan) listLimits(ctx context.Context) countedLimits {
	var all countedLimits
	if !p.unblocked {
		for _, l := range p.facts.BlockLimits {
			d := library.NewAutomatedBlock(l.Message)
			d.OverridableBlock = library.PatronBlock.Describe(ctx)
			all = append(all, countedLimit{l.Limit, d})
		}
	}
	if own := p.findLimit(); own != nil {
		all = append(all, countedLimit{*own, p.newLimitReached(ctx)})
	}
	return all
}

// findReached returns the refusals of the limits that storage names as reached. If it names none, it
// is of another version, and any of them may be reached.
func (all countedLimits) findReached(err error) fault.List {
	var places []string
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, d := range f.Details {
			for _, q := range d.Parameters {
				if q.Key == schemas.LimitPlace && q.Value != nil {
					places = append(places, *q.Value)
				}
			}
		}
	}
	var found fault.List
	for i, l := range all {
		if len(places) == 0 || slices.Contains(places, strconv.Itoa(i)) {
			found = append(found, l.refusal)
		}
	}
	return found
}
