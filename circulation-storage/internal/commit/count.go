package commit

import (
	"context"
	"time"

	"checkoutlock/schemas"
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

// The outcomes. A Store returns the first two; the others are errors, for an Observer.
const (
	Committed       Outcome = "committed"
	Repeated        Outcome = "repeated"         // was committed before
	LockLost        Outcome = "lock_lost"        // refused by the fence of the lock
	KeyLeaseLost    Outcome = "claim_lost"       // refused by the fence of an Idempotency-Key
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
		Committed, Repeated, LockLost, KeyLeaseLost, SettingsChanged, ItemChanged, LoanChanged, RequestChanged, LimitReached, Refused, Failed,
	}
}

// Observer receives the ends of commits. Its methods are called from many goroutines and must not
// block.
type Observer interface {
	// Ended gets Repeated for check-outs and check-ins only. A store answers other repeats alike.
	Ended(kind Kind, o Outcome, took time.Duration)
	// LentUnfenced is called for each loan that was lent without a fence.
	LentUnfenced()
	// RequestsExpired receives how many requests were closed.
	RequestsExpired(n int)
}

// Commits is all that commits.
type Commits interface {
	Store
	QueueStore
}

// Count returns the store with obs, which receives the end of each commit.
func Count(store Commits, obs Observer) Commits { return counted{store, obs} }

type counted struct {
	Commits
	obs Observer
}

// CheckOut implements Store.
func (c counted) CheckOut(ctx context.Context, out CheckOut) (schemas.CheckOutResult, Outcome, error) {
	start := time.Now()
	result, outcome, err := c.Commits.CheckOut(ctx, out)
	c.observe(CheckingOut, start, outcome, err)
	if err == nil && outcome == Committed && out.Unfenced {
		c.obs.LentUnfenced()
	}
	return result, outcome, err
}

// CheckIn implements Store.
func (c counted) CheckIn(ctx context.Context, in CheckIn) (schemas.CheckInResult, Outcome, error) {
	start := time.Now()
	result, outcome, err := c.Commits.CheckIn(ctx, in)
	c.observe(CheckingIn, start, outcome, err)
	return result, outcome, err
}

// Renew implements Store.
func (c counted) Renew(ctx context.Context, r Renewal) (schemas.RenewalResult, error) {
	start := time.Now()
	result, err := c.Commits.Renew(ctx, r)
	c.observe(LoanRenewal, start, Committed, err)
	return result, err
}

// ChangeLoan implements Store.
func (c counted) ChangeLoan(ctx context.Context, change LoanChange) error {
	start := time.Now()
	err := c.Commits.ChangeLoan(ctx, change)
	c.observe(LoanChanging, start, Committed, err)
	return err
}

// ReplaceLoan implements Store.
func (c counted) ReplaceLoan(ctx context.Context, r LoanReplacement) error {
	start := time.Now()
	err := c.Commits.ReplaceLoan(ctx, r)
	c.observe(LoanReplacing, start, Committed, err)
	return err
}

// Place implements Store.
func (c counted) Place(ctx context.Context, p Placement) (schemas.PlacedRequest, error) {
	start := time.Now()
	placed, err := c.Commits.Place(ctx, p)
	c.observe(RequestPlacement, start, Committed, err)
	return placed, err
}

// ChangeRequest implements QueueStore.
func (c counted) ChangeRequest(ctx context.Context, r RequestChange) error {
	start := time.Now()
	err := c.Commits.ChangeRequest(ctx, r)
	c.observe(r.kind(), start, Committed, err)
	return err
}

// MoveRequest implements QueueStore.
func (c counted) MoveRequest(ctx context.Context, m RequestMove) (schemas.PlacedRequest, error) {
	start := time.Now()
	moved, err := c.Commits.MoveRequest(ctx, m)
	c.observe(RequestMoving, start, Committed, err)
	return moved, err
}

// OrderQueue implements QueueStore.
func (c counted) OrderQueue(ctx context.Context, o QueueOrder) (schemas.OrderedQueue, error) {
	start := time.Now()
	ordered, err := c.Commits.OrderQueue(ctx, o)
	c.observe(QueueOrdering, start, Committed, err)
	return ordered, err
}

// ExpireRequests implements QueueStore.
func (c counted) ExpireRequests(ctx context.Context, limit int) (int, error) {
	n, err := c.Commits.ExpireRequests(ctx, limit)
	c.obs.RequestsExpired(n)
	return n, err
}

func (c counted) observe(kind Kind, start time.Time, o Outcome, err error) {
	if err != nil {
		o = outcomeOf(err)
	}
	c.obs.Ended(kind, o, time.Since(start))
}

func (c RequestChange) kind() Kind {
	switch {
	case c.Delete:
		return RequestDeletion
	case !isOpenRequest(c.request):
		return RequestCancellation
	}
	return RequestEdit
}

func outcomeOf(err error) Outcome {
	if refused, ok := refusals[fault.CodeOf(err)]; ok {
		return refused
	}
	return Failed
}

// refusals has the outcomes of faults that are the caller's.
var refusals = map[fault.Code]Outcome{
	fault.LockLost: LockLost, fault.KeyLeaseLost: KeyLeaseLost, fault.SettingsChanged: SettingsChanged, fault.ItemChanged: ItemChanged,
	fault.LoanChanged: LoanChanged, fault.RequestChanged: RequestChanged, fault.LimitReached: LimitReached,
	fault.Invalid: Refused, fault.Malformed: Refused, fault.NotFound: Refused,
}
