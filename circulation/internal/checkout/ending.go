package checkout

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The outcomes of check-outs, as metrics and history name them.
const (
	OutcomeLent            = schemas.OutcomeLent
	OutcomeRefused         = "refused"
	OutcomeLimitReached    = "limit_reached"
	OutcomeLockNotAcquired = "lock_not_acquired"
	OutcomeUnknown         = "outcome_unknown"
	OutcomeTakenOver       = "taken_over" // by another request with the same Idempotency-Key
	OutcomeClientLeft      = "client_left"
	OutcomeOverloaded      = "overloaded" // not begun: the process had enough to do
	OutcomeFailed          = "failed"
)

// Outcomes returns all of them.
func Outcomes() []string {
	return []string{
		OutcomeLent, OutcomeRefused, OutcomeLimitReached, OutcomeLockNotAcquired,
		OutcomeUnknown, OutcomeTakenOver, OutcomeClientLeft, OutcomeOverloaded, OutcomeFailed,
	}
}

// Ending is how a check-out ended. What the request named is as it came.
type Ending struct {
	Outcome string // one of the constants
	// Code is that of the first error with a code or a cause, and Outcome agrees with
	// it. It is empty for a loan, and for refusals that have neither.
	Code string
	// Reason is what was answered, all messages; empty for a loan. A lock that was
	// not obtained has more than the answer, where that does not tell why. Staff may
	// see it: neither causes that are for the log are in it nor the patron's name,
	// which no list of check-outs is to show.
	Reason string

	UserBarcode, ItemBarcode, ServicePointID string

	UserID string // of the patron; empty when no such one was found
	LoanID string // of the loan, also of one that nobody knows of whether it exists

	// Wait is how long it waited for the lock in all; nil when it asked for none.
	Wait *time.Duration
	Took time.Duration
	// Repeats is how often its commit was sent again.
	Repeats int
}

// ending describes how t ended.
func (t *try) ending(ctx context.Context, err error, took time.Duration) Ending {
	e := Ending{
		Outcome: outcome(ctx, err), UserBarcode: t.req.UserBarcode, ItemBarcode: t.req.ItemBarcode,
		ServicePointID: t.req.ServicePointID, UserID: t.user.ID, Wait: t.waited, Took: took, Repeats: t.repeats,
	}
	if e.Outcome == OutcomeLent || e.Outcome == OutcomeUnknown {
		e.LoanID = t.loan.ID
	}
	if e.Outcome == OutcomeClientLeft {
		e.Reason = "The machine left before it was answered"
	} else if err != nil {
		e.Code, e.Reason = answered(err)
		e.Reason = strings.ReplaceAll(e.Reason, toUserBecause(t.user.Personal.FullName()), toUserBecause("…"))
	}
	return e
}

func outcome(ctx context.Context, err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return OutcomeLent
	case errors.As(err, &f) && f.Code == fault.Invalid:
		if strings.HasPrefix(firstCause(f), "ITEM_LIMIT_") {
			return OutcomeLimitReached
		}
		return OutcomeRefused
	case fault.Is(err, fault.LockNotAcquired):
		return OutcomeLockNotAcquired
	case fault.Is(err, fault.Overloaded):
		return OutcomeOverloaded
	case fault.Is(err, fault.ClaimLost):
		return OutcomeTakenOver
	case fault.Is(err, fault.OutcomeUnknown):
		return OutcomeUnknown
	case errors.Is(ctx.Err(), context.Canceled):
		return OutcomeClientLeft
	}
	return OutcomeFailed
}

// answered is the code and the reason of the answer that err becomes.
func answered(err error) (code, reason string) {
	var f *fault.Error
	switch {
	case !errors.As(err, &f):
		if errors.Is(err, context.DeadlineExceeded) {
			return string(fault.Timeout), "The check-out took too long"
		}
		return string(fault.Internal), "Internal server error"
	case len(f.Details) == 0:
		return string(f.Code), f.Msg
	}
	messages := make([]string, len(f.Details))
	for i, d := range f.Details {
		messages[i] = d.Message
	}
	return firstCause(f), strings.Join(messages, "; ") + whyNoLock(f)
}

// firstCause is the code or cause of the first error that has one. The later ones
// do not count, so that outcome and code name the same error.
func firstCause(f *fault.Error) string {
	for _, d := range f.Details {
		if cause := cmp.Or(d.Code, d.Cause); cause != "" {
			return cause
		}
	}
	return ""
}

// whyNoLock tells of a lock that was not obtained what FOLIO's answer does not: that
// it was no other check-out that took too long. It is empty for any other fault.
func whyNoLock(f *fault.Error) string {
	if f.Code != fault.LockNotAcquired {
		return ""
	}
	switch fault.CodeOf(f.Err) {
	case fault.LockLost:
		return ": the one it had was released by force or taken over, and no time was left to take it again"
	case fault.SettingsChanged:
		return ": the lock's settings were changed meanwhile, and no time was left to begin again"
	default:
		return ""
	}
}
