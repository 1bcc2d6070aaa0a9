package checkout

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Step is a point between two parts of a check-out.
type Step string

// The steps, in order.
const (
	Validated Step = "validated" // all checks passed; nothing is locked or written
	Locked    Step = "locked"    // the lock was granted; the commit comes next
	Committed Step = "committed" // the loan exists; the lock is still held
	Released  Step = "released"  // the lock was given back
)

// Observer watches check-outs. Its methods are called from many goroutines, and the check-out goes
// on when they return.
type Observer interface {
	// Reached is called at each step, with the time since the one before.
	Reached(ctx context.Context, step Step, took time.Duration)
	// WaitBegan is called when a check-out begins to try for the lock, and WaitEnded with the same
	// wait when it stops.
	WaitBegan(ctx context.Context, w Wait)
	WaitEnded(ctx context.Context, w Wait)
	// Waited is called with the time from the first try for the lock to the last, and whether the
	// lock was acquired.
	Waited(wait time.Duration, acquired bool)
	// Ended is called once per check-out. The context may be done by then.
	Ended(ctx context.Context, e Ending)
	// Repeated is called when a commit is repeated. The reason is a fault code.
	Repeated(reason string)
}

// Wait is a check-out's wait for the patron's lock.
type Wait struct {
	AcquisitionID          string // of no other wait
	UserID, ServicePointID string
	Began                  time.Time
}

// The outcomes of check-outs, as metrics and history name them.
const (
	OutcomeLent            = schemas.OutcomeLent
	OutcomeRefused         = "refused"
	OutcomeLimitReached    = schemas.OutcomeLimitReached
	OutcomeLockNotAcquired = schemas.OutcomeLockNotAcquired
	OutcomeUnknown         = "outcome_unknown"
	OutcomeTakenOver       = "taken_over" // by another request with the same Idempotency-Key
	OutcomeClientLeft      = "client_left"
	OutcomeOverloaded      = "overloaded" // not begun, because the process was busy
	OutcomeFailed          = "failed"
)

// Outcomes returns all outcomes.
func Outcomes() []string {
	return []string{
		OutcomeLent, OutcomeRefused, OutcomeLimitReached, OutcomeLockNotAcquired,
		OutcomeUnknown, OutcomeTakenOver, OutcomeClientLeft, OutcomeOverloaded, OutcomeFailed,
	}
}

// Ending is how a check-out ended. It has the request's texts unchanged.
type Ending struct {
	Outcome string // one of the constants
	// Code is that of the first error with a code or a cause. Outcome is that of the same error.
	// Code is empty for a loan, and for refusals that have neither.
	Code string
	// Reason has all messages of the answer; empty for a loan. For a lock that was not acquired it
	// may say more than the answer. Staff may see it: it has neither causes for the log nor the
	// patron's name, which no list of check-outs shows.
	Reason string

	UserBarcode, ItemBarcode, ServicePointID string

	UserID string // of the patron; empty if none was found
	LoanID string // of the loan, also of one that may exist

	// Wait is how long it waited for the lock in all; nil if it asked for none.
	Wait *time.Duration
	Took time.Duration
	// Repeats is how often its commit was sent again.
	Repeats int
}

// reportEnding reports how the check-out ended to the observer and to the log.
func (a *attempt) reportEnding(ctx context.Context, err error) {
	e := a.describeEnding(ctx, err)
	a.service.Observer.Ended(ctx, e)
	a.service.logEnding(ctx, a.plan.req, e, err)
}

func (a *attempt) describeEnding(ctx context.Context, err error) Ending {
	req, user := a.plan.req, a.plan.facts.User
	e := Ending{
		Outcome: nameOutcome(ctx, err), UserBarcode: req.UserBarcode, ItemBarcode: req.ItemBarcode,
		ServicePointID: req.ServicePointID, UserID: user.ID, Wait: a.waited, Took: time.Since(a.start), Repeats: a.repeats,
	}
	if e.Outcome == OutcomeLent || e.Outcome == OutcomeUnknown {
		e.LoanID = a.plan.loan.ID
	}
	if err == nil && a.byRepeat {
		e.Outcome = OutcomeTakenOver
	}
	if e.Outcome == OutcomeClientLeft {
		e.Reason = "The machine left before it was answered"
	} else if err != nil {
		e.Code, e.Reason = describeAnswer(err)
		e.Reason = strings.ReplaceAll(e.Reason, quotePatron(user.Personal.FullName()), quotePatron("…"))
	}
	return e
}

// logEnding writes the one line of a check-out. For a refusal it logs the ending's reason, which
// leaves out the patron's name. For any other error it logs err, because the reason leaves out its
// cause. The barcodes of patron and proxy are masked in all of it. An overloaded one is a line of
// debug, because thousands at once would delay the others.
func (s *Service) logEnding(ctx context.Context, req Request, e Ending, err error) {
	level := slog.LevelInfo
	if e.Outcome == OutcomeOverloaded {
		level = slog.LevelDebug
	}
	if !s.Log.Enabled(ctx, level) {
		return
	}
	mask := func(text string) string { return redact.MaskIn(text, req.UserBarcode, req.ProxyUserBarcode) }
	attrs := []slog.Attr{
		slog.String("outcome", e.Outcome), slog.String("patron", redact.Mask(e.UserBarcode)),
		slog.String("item", mask(e.ItemBarcode)), slog.Float64("took_ms", schemas.Milliseconds(e.Took)),
	}
	if e.Wait != nil {
		attrs = append(attrs, slog.Float64("wait_ms", schemas.Milliseconds(*e.Wait)))
	}
	if e.Repeats > 0 {
		attrs = append(attrs, slog.Int("repeats", e.Repeats))
	}
	switch {
	case fault.Is(err, fault.Invalid):
		attrs = append(attrs, slog.String("code", e.Code), slog.String("why", mask(e.Reason)))
	case err != nil:
		attrs = append(attrs, slog.String("why", mask(err.Error())))
	}
	s.Log.LogAttrs(ctx, level, "check-out", attrs...)
}

// nameOutcome returns the outcome of a check-out that ended with err.
func nameOutcome(ctx context.Context, err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return OutcomeLent
	case errors.As(err, &f) && f.Code == fault.Invalid:
		if strings.HasPrefix(firstCode(f), "ITEM_LIMIT_") {
			return OutcomeLimitReached
		}
		return OutcomeRefused
	case fault.Is(err, fault.LockNotAcquired):
		return OutcomeLockNotAcquired
	case fault.Is(err, fault.Overloaded):
		return OutcomeOverloaded
	case fault.Is(err, fault.KeyLeaseLost), fault.Is(err, fault.GivenUp):
		return OutcomeTakenOver
	case fault.Is(err, fault.OutcomeUnknown):
		return OutcomeUnknown
	case errors.Is(ctx.Err(), context.Canceled):
		return OutcomeClientLeft
	}
	return OutcomeFailed
}

// describeAnswer returns the code and the reason of the answer that err becomes.
func describeAnswer(err error) (code, reason string) {
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
	return firstCode(f), fault.List(f.Details).Text() + explainLock(f)
}

// firstCode returns the code of the first error. Later ones do not count, so that outcome and code
// name the same error.
func firstCode(f *fault.Error) string {
	if len(f.Details) == 0 {
		return ""
	}
	return f.Details[0].Code
}

// explainLock adds to FOLIO's answer why a lock was not acquired although no other check-out took
// too long. It is empty for any other fault.
func explainLock(f *fault.Error) string {
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
