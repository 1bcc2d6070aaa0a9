package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
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
	more, err := t.applyPolicy(ctx, &p, t.lockID)
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

// commitItem sends the commit, again while its outcome is unknown, and finds out
// what became of it if it stays unknown.
func (t *try) commitItem(ctx context.Context) (schemas.CheckOutResult, error) {
	if err := ctx.Err(); err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("no time is left to commit: %w", err) // nothing was sent
	}
	loan, err := json.Marshal(t.loan)
	if err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("writing the loan: %w", err)
	}
	body := schemas.CheckOut{
		Loan: loan, ItemVersion: t.item.Version, LockID: t.lockID, RequestID: t.fills, TitleLevel: t.titleLevel,
		ClaimID: t.req.ClaimID,
	}
	if t.lockID == "" || t.set.Announced {
		body.SettingsVersion = t.set.Version
	}
	send := func(ctx context.Context) (schemas.CheckOutResult, error) { return t.Committer.CheckOut(ctx, body) }
	result, err := retryCommit(ctx, send, func(err error) {
		t.again(err)
		t.Log.WarnContext(ctx, "outcome of the commit unknown; sending it again", "loan_id", t.loan.ID,
			"patron", redact.Mask(t.loan.UserID), "err", err)
	})
	if err != nil && unknown(err) {
		return t.findOut(context.WithoutCancel(ctx), err)
	}
	return result, err
}

// findOut settles a commit whose outcome stayed unknown. Releasing the lock waits
// for a commit in flight and fences off any that comes later; after that the loan
// is there or never will be. The release has to survive a crash of the database: a
// lock that comes back would not fence. Without a lock nothing keeps a late commit
// out, so a missing loan proves nothing.
func (t *try) findOut(ctx context.Context, cause error) (schemas.CheckOutResult, error) {
	fenced := false
	if t.lockID != "" {
		rctx, cancel := context.WithTimeout(ctx, releaseWait)
		defer cancel()
		if err := t.Locker.ReleaseDurably(rctx, t.lockID); err != nil {
			return schemas.CheckOutResult{}, outcomeUnknown(t.loan.ID, errors.Join(cause, err))
		}
		fenced, t.lockID = true, ""
	}
	rctx, cancel := context.WithTimeout(ctx, readLoanTimeout)
	defer cancel()
	loan, err := t.Committer.CommittedLoan(rctx, t.loan.ID)
	switch {
	case err == nil:
		t.item.Status, t.item.InTransitDestinationServicePointID = Status{Name: statusCheckedOut}, ""
		return schemas.CheckOutResult{Loan: loan}, nil
	case fenced && fault.Is(err, fault.NotFound):
		return schemas.CheckOutResult{}, fault.Wrap(cause, notLentCode(cause), "The item was not lent: storage failed")
	}
	return schemas.CheckOutResult{}, outcomeUnknown(t.loan.ID, errors.Join(cause, err))
}

// notLentCode is the code of a check-out that storage certainly did not commit. An
// outage is one that a repeat may outlast; anything else is a defect.
func notLentCode(cause error) fault.Code {
	code := fault.CodeOf(cause)
	if code == fault.Unavailable || code == fault.Timeout || errors.Is(cause, context.DeadlineExceeded) {
		return fault.Unavailable
	}
	return fault.Internal
}

// outcomeUnknown is the fault of a check-out whose loan may exist.
func outcomeUnknown(loanID string, cause error) error {
	return &fault.Error{
		Code: fault.OutcomeUnknown,
		Msg:  "Storage was lost: nobody can say yet whether the item was lent",
		Details: []fault.Detail{detail(string(fault.OutcomeUnknown),
			"Storage was lost: nobody can say yet whether the item was lent. The loan, if there is one, has this id",
			fault.Param("loanId", loanID))},
		Err: cause,
	}
}
