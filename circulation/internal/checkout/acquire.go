package checkout

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// waits hands out the configured waits, one per try, and belongs to one
// check-out: an acquisition that has to be repeated goes on where the last one
// stopped, so that the budget holds. It implements backoff.BackOff.
type waits struct {
	left []time.Duration
	// current is the wait that goes with the try under way, and tried when that
	// began.
	current time.Duration
	tried   time.Time
	last    bool
}

// begin starts a try and returns how long storage may wait for the lock: the
// next wait, or 0 at the last try.
func (w *waits) begin(now time.Time) time.Duration {
	w.tried = now
	if len(w.left) == 0 {
		w.current, w.last = 0, true
		return 0
	}
	w.current, w.left = w.left[0], w.left[1:]
	return w.current
}

// NextBackOff implements backoff.BackOff: what is left of the try's wait, since
// storage may have waited for all or part of it.
func (w *waits) NextBackOff() time.Duration {
	if w.last {
		return backoff.Stop
	}
	return max(0, w.current-time.Since(w.tried))
}

// Reset implements backoff.BackOff. It keeps what was used up: see waits.
func (w *waits) Reset() {}

// acquire tries for the patron's lock: once per configured wait, and a last
// time. A held lock and a full queue are tried again; a lost answer is asked for
// again at once, with the same request id, which gets the same lock; anything
// else ends it, since retrying an outage makes each check-out hang. A lock that may
// have been granted without an answer is given back.
//
// Faults: LockNotAcquired, and those of Locker.Acquire except the three above.
func (t *try) acquire(ctx context.Context, w *waits) (string, error) {
	req := LockRequest{UserID: t.loan.UserID, TTL: t.set.TTL, RequestID: uuid.NewString()}
	asked, granted := false, false
	ask := func() (string, error) {
		id, err := t.Locker.Acquire(ctx, req)
		granted = granted || mayBeGranted(err)
		return id, err
	}
	try := func() (string, error) {
		req.Wait = w.begin(time.Now())
		id, err := ask()
		if fault.Is(err, fault.Unavailable) && !asked {
			asked = true
			id, err = ask()
		}
		if err != nil && !heldByAnother(err) {
			return "", backoff.Permanent(err)
		}
		return id, err
	}
	t.Observer.Waiting(ctx, 1)
	start := time.Now()
	id, err := backoff.RetryWithData(try, backoff.WithContext(w, ctx))
	t.wasWaiting(ctx, time.Since(start), err == nil)
	if err != nil && granted {
		t.releaseRequest(ctx, req)
	}
	if err != nil && heldByAnother(err) && ctx.Err() == nil {
		return "", lockNotAcquired(err)
	}
	return id, unwrapPermanent(err)
}

// releaseRequest gives back the lock of an acquisition that ended without a known
// answer, on a context of its own: it must happen also when the machine has left.
func (t *try) releaseRequest(ctx context.Context, req LockRequest) {
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := t.Locker.ReleaseRequest(rctx, req.UserID, req.RequestID); err != nil {
		t.Log.WarnContext(ctx, "lock that may have been granted not released; it will be outdated", "patron", redact.Mask(req.UserID),
			"lock_request_id", req.RequestID, "ttl", req.TTL, "err", err)
	}
}

// wasWaiting notes the end of an acquisition. A check-out that lost its lock has
// several.
func (t *try) wasWaiting(ctx context.Context, wait time.Duration, got bool) {
	t.Observer.Waiting(ctx, -1)
	t.Observer.Waited(wait, got)
	if t.waited == nil {
		t.waited = new(time.Duration)
	}
	*t.waited += wait
}

func heldByAnother(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.LockHeld || code == fault.LockQueueFull
}

// mayBeGranted reports whether a try that failed may have got the lock: its answer was
// lost, did not come in time, or is a failure that can follow the grant.
func mayBeGranted(err error) bool {
	switch fault.CodeOf(err) {
	case fault.LockHeld, fault.LockQueueFull, fault.Invalid, fault.Malformed, fault.TooLarge, fault.Forbidden, fault.NotFound,
		fault.Overloaded, fault.UnknownTenant, fault.TenantNotReady:
		return false
	default:
		return true
	}
}

func unwrapPermanent(err error) error {
	var p *backoff.PermanentError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// lockNotAcquired is FOLIO's answer for a lock that was not obtained, with a code
// of our own and the cause for the log.
func lockNotAcquired(cause error) error {
	return &fault.Error{
		Code: fault.LockNotAcquired,
		Msg:  "unable to acquire lock",
		Details: []fault.Detail{
			detail(string(fault.LockNotAcquired), "unable to acquire lock", fault.Param("", "")),
		},
		RetryAfter: time.Second,
		Err:        cause,
	}
}
