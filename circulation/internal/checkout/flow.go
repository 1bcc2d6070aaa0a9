package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// Service checks items out and in. All fields are required.
type Service struct {
	Admission Admission
	Library   Library
	Locker    Locker
	Committer Committer
	Settings  Settings
	Observer  Observer
	Log       *slog.Logger
	// Now is the time for loan dates and for judging a patron's expiration. No
	// lock is judged by it.
	Now func() time.Time
}

// releaseTimeout bounds the wait for a release. A lock that is not released is
// outdated after its TTL.
const releaseTimeout = 1500 * time.Millisecond

// Lent is a check-out that happened: the stored loan, and the records that the
// answer is made of.
type Lent struct {
	Loan     json.RawMessage
	Item     Item
	User     User
	Group    Group
	Holdings Holdings
	Instance Instance
	Location Location
	Material Named
	Policy   policy.LoanPolicy
}

// CheckOut lends an item to a patron.
//
// It waits for its turn before that, unless the request was admitted already.
//
// Faults: Overloaded; Invalid with FOLIO's list of everything that is wrong, the item limit
// among it; LockNotAcquired; ClaimLost when another request with its
// Idempotency-Key has taken it over; OutcomeUnknown when storage was lost and
// nobody can say whether the loan exists; Internal for faults of stored
// configuration; whatever else storage answered.
//
// Nothing is written before the lock is held, and what is written is written in
// one transaction that the lock fences (POST /loan-storage/check-outs).
func (s *Service) CheckOut(ctx context.Context, req Request) (Lent, error) {
	start := time.Now()
	leave, err := s.enter(ctx, req)
	if err != nil {
		return Lent{}, err
	}
	defer leave()
	t := &try{Service: s, steps: steps{observer: s.Observer, last: time.Now()}}
	lent, err := t.checkOut(ctx, req)
	t.end(ctx, err, time.Since(start))
	return lent, err
}

// end reports how t ended.
func (t *try) end(ctx context.Context, err error, took time.Duration) {
	e := t.ending(ctx, err, took)
	t.Observer.Ended(ctx, e)
	t.log(ctx, t.req, e, err)
}

// log writes the one line of a check-out. err has the cause too, which Ending
// leaves out; but a refusal is all in its messages, and in Ending they are without
// the patron's name. The barcodes of patron and proxy are masked in all of it.
func (s *Service) log(ctx context.Context, req Request, e Ending, err error) {
	masked := func(text string) string { return maskBarcodes(text, req.UserBarcode, req.ProxyUserBarcode) }
	attrs := []slog.Attr{
		slog.String("outcome", e.Outcome), slog.String("patron", redact.Mask(e.UserBarcode)),
		slog.String("item", masked(e.ItemBarcode)), slog.Float64("took_ms", milliseconds(e.Took)),
	}
	if e.Wait != nil {
		attrs = append(attrs, slog.Float64("wait_ms", milliseconds(*e.Wait)))
	}
	if e.Repeats > 0 {
		attrs = append(attrs, slog.Int("repeats", e.Repeats))
	}
	switch {
	case fault.Is(err, fault.Invalid):
		attrs = append(attrs, slog.String("code", e.Code), slog.String("why", masked(e.Reason)))
	case err != nil:
		attrs = append(attrs, slog.String("why", masked(err.Error())))
	}
	s.Log.LogAttrs(ctx, slog.LevelInfo, "check-out", attrs...)
}

// maskBarcodes masks the barcodes of patrons where text names them.
func maskBarcodes(text string, barcodes ...string) string {
	for _, b := range barcodes {
		text = redact.Hide(text, b, redact.Mask(b))
	}
	return text
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// try is one check-out.
type try struct {
	*Service
	*plan
	steps   steps
	set     settings.Settings
	lockID  string         // "" while no lock is held
	waited  *time.Duration // for the lock; nil when none was asked for
	repeats int            // commits sent again
}

func (t *try) checkOut(ctx context.Context, req Request) (Lent, error) {
	var err error
	if t.plan, err = t.validate(ctx, req); err != nil {
		return Lent{}, err
	}
	t.steps.reached(ctx, Validated)
	t.set = t.Settings.Current(ctx)
	return t.lend(ctx)
}

// again notes that the commit is repeated because of err.
func (t *try) again(err error) {
	t.repeats++
	t.Observer.Again(string(fault.CodeOf(err)))
}

// lend takes the lock, lends and releases, again and again while the lock was
// lost or the settings changed under it and the wait budget lasts. The first
// change of settings is followed also without a budget.
func (t *try) lend(ctx context.Context) (Lent, error) {
	start, w, refreshed := time.Now(), &waits{left: t.set.Waits}, false
	for {
		lent, err := t.lendOnce(ctx, w)
		inTime := time.Since(start) <= t.set.WaitBudget()
		switch {
		case fault.Is(err, fault.LockLost):
		case fault.Is(err, fault.SettingsChanged):
			locked := t.set.Enabled
			t.set = t.Settings.Refresh(ctx)
			if !locked { // so no wait was used
				w.left = t.set.Waits
			}
			inTime, refreshed = inTime || !refreshed, true
		default:
			return lent, err
		}
		switch {
		case errors.Is(ctx.Err(), context.Canceled): // the machine left
			return Lent{}, ctx.Err()
		case !inTime || ctx.Err() != nil:
			return Lent{}, lockNotAcquired(err)
		}
		t.again(err)
	}
}

// lendOnce is the part between acquire and release.
func (t *try) lendOnce(ctx context.Context, w *waits) (Lent, error) {
	if t.set.Enabled {
		id, err := t.acquire(ctx, w)
		if err != nil {
			return Lent{}, err
		}
		t.lockID = id
		defer t.release(ctx)
		t.steps.reached(ctx, Locked)
		reached, err := t.checkLimit(ctx, t.plan, id) // begun after the acquire answered
		if err != nil {
			return Lent{}, err
		}
		if reached != nil {
			return Lent{}, fault.Validation(*reached)
		}
		t.steps.reached(ctx, Recounted)
	} else if t.set.Version == "" {
		// Storage refuses a commit that shows neither a lock nor a version.
		return Lent{}, fault.New(fault.Unavailable, "The check-out lock's settings could not be read from storage")
	}
	if err := ctx.Err(); err != nil {
		return Lent{}, err // nothing is written for a machine that left
	}
	result, err := t.commit(ctx)
	if err != nil {
		return Lent{}, err
	}
	t.steps.reached(ctx, Committed)
	return t.lent(ctx, result), nil
}

// release gives the lock back, on a context of its own: it must happen also when
// the machine has left.
func (t *try) release(ctx context.Context) {
	if t.lockID == "" {
		return
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := t.Locker.Release(rctx, t.lockID); err != nil {
		t.Log.WarnContext(ctx, "lock not released; it will be outdated", "patron", redact.Mask(t.loan.UserID),
			"lock_id", t.lockID, "ttl", t.set.TTL, "err", err)
	}
	t.lockID = ""
	t.steps.reached(ctx, Released)
}

// lent is the check-out with what storage answered. It cannot fail, as the item is
// lent by now.
func (t *try) lent(ctx context.Context, result schemas.CheckOutResult) Lent {
	item := t.item
	if len(result.Item) > 0 {
		var stored *Item // a fresh one, so that what storage removed is gone
		if err := json.Unmarshal(result.Item, &stored); err != nil {
			t.Log.ErrorContext(ctx, "storage answered an item that cannot be read", "err", err)
		} else if stored != nil {
			item = *stored
		}
	}
	return Lent{
		Loan: result.Loan, Item: item, User: t.user, Group: t.group, Holdings: t.holdings,
		Instance: t.instance, Location: t.location, Material: t.material, Policy: t.policy,
	}
}

// steps measures from one step to the next.
type steps struct {
	observer Observer
	last     time.Time
}

func (s *steps) reached(ctx context.Context, step Step) {
	now := time.Now()
	s.observer.Reached(ctx, step, now.Sub(s.last))
	s.last = time.Now()
}
