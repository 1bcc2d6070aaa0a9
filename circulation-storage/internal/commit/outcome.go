package commit

import (
	"context"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Kind is what a commit does, for metrics.
type Kind string

// The kinds. An edit that closes a request counts as a cancellation.
const (
	CheckingOut         Kind = "check-out"
	CheckingIn          Kind = "check-in"
	LoanRenewal         Kind = "renewal"
	LoanChanging        Kind = "loan-change"
	LoanReplacing       Kind = "loan-replacement"
	RequestPlacement    Kind = "request-placement"
	RequestEdit         Kind = "request-edit"
	RequestCancellation Kind = "request-cancellation"
	RequestDeletion     Kind = "request-deletion"
	RequestMoving       Kind = "request-move"
	QueueOrdering       Kind = "queue-order"
)

// Kinds returns every kind, in the order of declaration.
func Kinds() []Kind {
	return []Kind{
		CheckingOut, CheckingIn, LoanRenewal, LoanChanging, LoanReplacing,
		RequestPlacement, RequestEdit, RequestCancellation, RequestDeletion, RequestMoving, QueueOrdering,
	}
}

// Outcome is how a commit ended.
type Outcome string

// The outcomes. Those behind Repeated are errors.
const (
	Committed       Outcome = "committed"
	Repeated        Outcome = "repeated"         // was committed before
	LockHeld        Outcome = "lock_held"        // the lock was not free to take
	LockLost        Outcome = "lock_lost"        // refused by the fence of the lock
	KeyLeaseLost    Outcome = "claim_lost"       // refused by the fence of an Idempotency-Key
	GivenUp         Outcome = "given_up"         // refused because it was settled as not lent
	SettingsChanged Outcome = "settings_changed" // the caller acted on old settings
	ItemChanged     Outcome = "item_changed"
	LoanChanged     Outcome = "loan_changed"
	RequestChanged  Outcome = "request_changed" // the caller saw another queue
	LimitReached    Outcome = "limit_reached"
	Refused         Outcome = "refused" // other mistakes of the caller
	Failed          Outcome = "error"
)

// Outcomes returns every outcome, in the order of declaration.
func Outcomes() []Outcome {
	return []Outcome{
		Committed, Repeated, LockHeld, LockLost, KeyLeaseLost, GivenUp, SettingsChanged, ItemChanged, LoanChanged, RequestChanged, LimitReached, Refused, Failed,
	}
}

// Observer receives the ends of commits. Its methods are called from many goroutines and must not
// block.
type Observer interface {
	// Ended gets Repeated for check-outs and check-ins only. A store answers other repeats alike.
	Ended(kind Kind, o Outcome, took time.Duration)
	// LentUnfenced is called for each loan that was lent without a fence.
	LentUnfenced()
	// LockReleased is called after each commit that released a lock which it has not taken itself.
	LockReleased(ctx context.Context, userID uuid.UUID)
	// RequestsExpired receives how many requests were closed.
	RequestsExpired(n int)
}

// Kind is what the change does, as it counts.
func (c RequestChange) Kind() Kind {
	switch {
	case c.Delete:
		return RequestDeletion
	case !isOpenRequest(c.request):
		return RequestCancellation
	}
	return RequestEdit
}

// EndOf returns how a commit ended that made the change, or failed with err.
func EndOf(kind Kind, change Change, err error) Outcome {
	refused, ok := refusals[fault.CodeOf(err)]
	switch {
	case ok:
		return refused
	case err != nil:
		return Failed
	case change.Repeated && (kind == CheckingOut || kind == CheckingIn):
		return Repeated
	}
	return Committed
}

// refusals has the outcomes of faults that are the caller's.
var refusals = map[fault.Code]Outcome{
	fault.LockHeld: LockHeld, fault.LockLost: LockLost, fault.KeyLeaseLost: KeyLeaseLost, fault.GivenUp: GivenUp, fault.SettingsChanged: SettingsChanged, fault.ItemChanged: ItemChanged,
	fault.LoanChanged: LoanChanged, fault.RequestChanged: RequestChanged, fault.LimitReached: LimitReached,
	fault.Invalid: Refused, fault.Malformed: Refused, fault.NotFound: Refused,
}
