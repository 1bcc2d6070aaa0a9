package checkout

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/schemas/span"
)

// waits has the configured waits of one check-out, one per try. A repeated acquisition goes on
// where the last one stopped, so that the budget holds. It implements backoff.BackOff.
type waits struct {
	remaining []time.Duration
	current   time.Duration // the wait of the try under way
	tried     time.Time     // when that try began
	last      bool
}

// beginTry starts a try and returns how long storage may wait for the lock: the next wait, or 0 at
// the last try.
func (w *waits) beginTry(now time.Time) time.Duration {
	w.tried = now
	if len(w.remaining) == 0 {
		w.current, w.last = 0, true
		return 0
	}
	w.current, w.remaining, w.last = w.remaining[0], w.remaining[1:], false
	return w.current
}

// NextBackOff implements backoff.BackOff: the rest of the try's wait, because storage may have
// waited for all or part of it.
func (w *waits) NextBackOff() time.Duration {
	if w.last {
		return backoff.Stop
	}
	return max(0, w.current-time.Since(w.tried))
}

// Reset implements backoff.BackOff. It keeps what was used up: see waits.
func (w *waits) Reset() {}

// limitTurn returns how long a commit may wait for its turn at the lock: the next wait, but not longer
// than storage allows.
func (w *waits) limitTurn() time.Duration {
	if len(w.remaining) == 0 {
		return 0
	}
	return min(w.remaining[0], schemas.MaxLockTurnWaitMs*time.Millisecond)
}

// spend takes the time off the next wait. A wait that is used up goes: it has been tried, and a try that
// does not wait gives the place in line up.
func (w *waits) spend(d time.Duration) {
	if len(w.remaining) == 0 {
		return
	}
	rest := w.remaining[0] - d
	w.remaining = slices.Clone(w.remaining[1:]) // they are the settings'
	if rest >= time.Millisecond {               // storage waits for whole ones
		w.remaining = slices.Insert(w.remaining, 0, rest)
	}
}

// acquisition asks for one lock. All its tries have the same acquisition id.
type acquisition struct {
	began        time.Time
	locker       Locker
	req          LockRequest
	maybeGranted bool   // a failed try may have got the lock
	end          func() // ends the wait, once
}

// ask asks once.
func (q *acquisition) ask(ctx context.Context) (string, error) {
	id, err := q.locker.Acquire(ctx, q.req)
	q.maybeGranted = q.maybeGranted || library.IsUnknown(err)
	return id, err
}

// try asks, and asks once more for a lost answer. Storage waits for the lock as long as wait, both times
// together. An error ends the acquisition unless the lock is held or its queue is full.
func (q *acquisition) try(ctx context.Context, wait time.Duration) (string, error) {
	began := time.Now()
	q.req.Wait = wait
	id, err := q.ask(ctx)
	if fault.Is(err, fault.Unavailable) && !fault.ChangedNothing(err) {
		q.req.Wait = max(0, wait-time.Since(began))
		id, err = q.ask(ctx)
	}
	if err != nil && !isHeldByAnother(err) {
		return "", backoff.Permanent(err)
	}
	return id, err
}

// beginAcquisition begins to try for the patron's lock. Its wait lasts until end is called.
func (a *attempt) beginAcquisition(ctx context.Context) *acquisition {
	q := &acquisition{
		began: time.Now(), locker: a.service.Locker,
		req: LockRequest{UserID: a.plan.loan.UserID, TTL: a.settings.TTL, AcquisitionID: uuid.NewString()},
	}
	w := Wait{AcquisitionID: q.req.AcquisitionID, UserID: q.req.UserID, ServicePointID: a.plan.req.ServicePointID, Began: q.began}
	q.end = sync.OnceFunc(func() { a.service.Observer.WaitEnded(ctx, w) })
	a.service.Observer.WaitBegan(ctx, w)
	return q
}

// acquireLock tries for the patron's lock once per configured wait, and a last time. It tries again
// for a held lock and a full queue. It repeats a lost answer at once with the same acquisition id,
// which gets the same lock. Anything else ends it, because retries of an outage make each check-out
// hang. A lock that may have been granted without an answer is given back.
//
// Faults: LockNotAcquired, and those of Locker.Acquire except the three above.
func (a *attempt) acquireLock(ctx context.Context, q *acquisition, w *waits) (_ string, err error) {
	ctx, end := span.Start(ctx, "wait for the lock")
	defer end(&err)
	try := func() (string, error) { return q.try(ctx, w.beginTry(time.Now())) }
	id, err := backoff.RetryWithData(try, backoff.WithContext(w, ctx))
	a.noteWait(q, time.Since(q.began), err == nil)
	if err != nil && q.maybeGranted {
		a.releaseAcquisition(ctx, q.req)
	}
	if isHeldByAnother(err) {
		return "", a.newLockNotAcquired(err)
	}
	return id, err
}

// releaseAcquisition gives back the lock of an acquisition that ended without a known answer, on a
// context of its own because the machine may have left.
func (a *attempt) releaseAcquisition(ctx context.Context, req LockRequest) {
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := a.service.Locker.ReleaseAcquisition(rctx, req.UserID, req.AcquisitionID); err != nil {
		a.service.Log.WarnContext(ctx, "lock that may have been granted not released; it will be outdated", "patron", redact.Mask(req.UserID),
			"lock_request_id", req.AcquisitionID, "ttl", req.TTL, "err", err)
	}
}

// noteWait adds up the waits. A check-out that lost its lock has several.
func (a *attempt) noteWait(q *acquisition, wait time.Duration, acquired bool) {
	q.end()
	a.service.Observer.Waited(wait, acquired)
	if a.waited == nil {
		a.waited = new(time.Duration)
	}
	*a.waited += wait
}

func isHeldByAnother(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.LockHeld || code == fault.LockQueueFull
}

// newLockNotAcquired returns FOLIO's answer for a lock that was not acquired, with our code, whose lock
// it was, how long the check-out waited, and the cause for the log.
func (a *attempt) newLockNotAcquired(cause error) error {
	var waited time.Duration
	if a.waited != nil {
		waited = *a.waited
	}
	return &fault.Error{
		Code: fault.LockNotAcquired,
		Msg:  "unable to acquire lock",
		Details: fault.List{fault.Refusal(string(fault.LockNotAcquired), "unable to acquire lock",
			fault.Param("userBarcode", a.plan.req.UserBarcode), fault.Param("waitedMs", strconv.FormatInt(waited.Milliseconds(), 10)))},
		RetryAfter: time.Second,
		Err:        cause,
	}
}
