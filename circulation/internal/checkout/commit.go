package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/call"
	"checkoutlock/schemas/fault"
)

// Bounds of the part that no longer depends on the machine's connection. All
// commits, a release that waits in vain, one more (releaseTimeout), and 2 s to settle
// an Idempotency-Key stay below config.FinishMargin, which a request may go on for
// beyond its time-out.
const (
	commitTimeout   = 2500 * time.Millisecond // one commit
	commitBudget    = 3 * time.Second         // begins of repeated commits
	commitsTimeout  = 6 * time.Second         // all commits, reading the item again in between
	releaseWait     = 2 * time.Second         // the release that waits for a commit in flight
	readLoanTimeout = time.Second             // reading the loan after that
)

// commit writes the check-out. From here on the machine's connection does not
// matter: a machine that leaves now finds its loan when it asks again.
//
// An item or a queue that changed since it was validated is read again, once.
func (t *try) commit(ctx context.Context) (schemas.CheckOutResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitsTimeout)
	defer cancel()
	result, err := t.commitItem(ctx)
	if !fault.Is(err, fault.ItemChanged) && !fault.Is(err, fault.RequestChanged) {
		return result, err
	}
	t.again(err)
	if err := t.readItemAgain(ctx); err != nil {
		return schemas.CheckOutResult{}, err
	}
	return t.commitItem(ctx)
}

// readItemAgain judges the item and its queue as storage has them now, and the
// policy and the limit with them: the change may be one of type or place. The plan
// is replaced only if the item may still be lent.
func (t *try) readItemAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	p := *t.plan
	if err := t.gatherItemAgain(ctx, &p.facts); err != nil {
		return err
	}
	wrong := slices.Concat(p.checkItem(), p.checkQueue())
	more, err := t.applyPolicy(ctx, &p)
	if err != nil {
		return err
	}
	if wrong = append(wrong, more...); len(wrong) == 0 {
		wrong, err = t.makeLoan(ctx, &p)
	}
	switch {
	case err != nil:
		return err
	case len(wrong) > 0:
		return fault.Validation(wrong...)
	}
	t.plan = &p
	return nil
}

// commitItem sends the commit, and sends it again while its outcome is unknown
// and the budget lasts: storage recognises the loan's id, so it happens once.
func (t *try) commitItem(ctx context.Context) (schemas.CheckOutResult, error) {
	loan, err := json.Marshal(t.loan)
	if err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("writing the loan: %w", err)
	}
	body := schemas.CheckOut{
		Loan: loan, ItemVersion: t.item.Version, LockID: t.lockID, RequestID: t.fills, TitleLevel: t.titleLevel,
		ClaimID: t.req.ClaimID,
	}
	if t.lockID == "" {
		body.SettingsVersion = t.set.Version
	}
	send := func() (schemas.CheckOutResult, error) {
		sctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()
		result, err := t.Committer.CheckOut(sctx, body)
		if err != nil && !unknown(err) {
			return result, backoff.Permanent(err)
		}
		return result, err
	}
	again := func(err error, _ time.Duration) {
		t.again(err)
		t.Log.WarnContext(ctx, "outcome of the commit unknown; sending it again", "loan_id", t.loan.ID,
			"patron", call.Mask(t.loan.UserID), "err", err)
	}
	result, err := backoff.RetryNotifyWithData(send, backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(commitBudget),
	), again)
	if err != nil && unknown(err) {
		return t.findOut(context.WithoutCancel(ctx), err)
	}
	return result, unwrapPermanent(err)
}

// unknown tells whether a failed commit may have happened all the same. A code
// that is not named as a refusal in Committer leaves it open.
func unknown(err error) bool {
	switch fault.CodeOf(err) {
	case fault.ClaimLost, fault.LockLost, fault.SettingsChanged, fault.ItemChanged, fault.RequestChanged, fault.Invalid,
		fault.Malformed, fault.TooLarge, fault.Forbidden, fault.NotFound:
		return false
	default:
		return true
	}
}

// findOut settles a commit whose outcome stayed unknown. Releasing the lock waits
// for a commit in flight and fences off any that comes later; after that the loan
// is there or never will be. Without a lock nothing keeps a late commit out, so a
// missing loan proves nothing.
func (t *try) findOut(ctx context.Context, cause error) (schemas.CheckOutResult, error) {
	fenced := false
	if t.lockID != "" {
		rctx, cancel := context.WithTimeout(ctx, releaseWait)
		defer cancel()
		if err := t.Locker.Release(rctx, t.lockID); err != nil {
			return schemas.CheckOutResult{}, t.outcomeUnknown(errors.Join(cause, err))
		}
		fenced, t.lockID = true, ""
	}
	rctx, cancel := context.WithTimeout(ctx, readLoanTimeout)
	defer cancel()
	loan, err := t.Committer.Loan(rctx, t.loan.ID)
	switch {
	case err == nil:
		t.item.Status, t.item.InTransitDestinationServicePointID = Status{Name: statusCheckedOut}, ""
		return schemas.CheckOutResult{Loan: loan}, nil
	case fenced && fault.Is(err, fault.NotFound):
		return schemas.CheckOutResult{}, fault.Wrap(cause, fault.Internal, "The item was not lent: storage failed")
	}
	return schemas.CheckOutResult{}, t.outcomeUnknown(errors.Join(cause, err))
}

func (t *try) outcomeUnknown(cause error) error {
	return &fault.Error{
		Code: fault.OutcomeUnknown,
		Msg:  "Storage was lost: nobody can say yet whether the item was lent",
		Details: []fault.Detail{detail(string(fault.OutcomeUnknown),
			"Storage was lost: nobody can say yet whether the item was lent. The loan, if there is one, has this id",
			fault.Param("loanId", t.loan.ID))},
		Err: cause,
	}
}
