package lock

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// MaxWaiting is how many callers may wait for one patron in one process. Kept places
// count too. A patron uses few machines, so more callers mean a broken client.
const MaxWaiting = 20

// retryAfter is the Retry-After of refused callers. Locks live for some hundred
// milliseconds, but the header counts in seconds.
const retryAfter = time.Second

// patron identifies a line.
type patron struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

// request is a call and its repeats.
type request struct {
	patron patron
	id     uuid.UUID
}

// placeKept is how long a line keeps the place of a request whose wait timed out. The
// answer and the next try must fit in it. An abandoned place delays the callers behind it
// for this time at most.
const placeKept = 250 * time.Millisecond

// news is what a woken waiter does. The zero value is to read the lock.
type news struct {
	take  bool          // take the lock, which was released just now
	pause time.Duration // read the lock later
}

// waiter is a caller who is in line or may join it. The queue's mutex guards what has no
// other owner.
type waiter struct {
	req Request
	// wake holds at most one signal to act on news. A waiter is woken as it becomes the
	// first in line, on a release, and if its own request got the lock.
	wake chan struct{}
	news news
	// end ends the call.
	end context.CancelFunc
	// released means that the request was released while the call ran.
	released atomic.Bool
	// kept removes the place of an absent caller. It is nil while the call runs.
	kept *time.Timer
	// offered means that a release is handing the lock over to w.
	offered bool
	// handed is the lock that was handed over to w.
	handed *Lock
	// seenAge is the age of the lock at w's last read. Only w's own call uses it.
	seenAge time.Duration
}

func newWaiter(req Request, end context.CancelFunc) *waiter {
	return &waiter{req: req, wake: make(chan struct{}, 1), end: end}
}

// repeats reports whether w is a call of the request.
func (w *waiter) repeats(requestID uuid.UUID) bool {
	return requestID != uuid.Nil && w.req.RequestID == requestID
}

// signal wakes w. The latest news counts.
func (w *waiter) signal(n news) {
	w.news = n
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// queue keeps the lines of waiters, first come, first served. Waiters wait in their own
// goroutines. Empty lines and requests without calls use no memory.
//
// The queue owns one timer for each kept place. After placeKept, the timer removes the
// place and wakes the next waiter. The queue stops the timer if the place is used or
// released, or the service stops.
type queue struct {
	mu      sync.Mutex
	lines   map[patron]*line
	awaited map[uuid.UUID]patron  // by the lock that the line waits for, see line.lockID
	calls   map[request][]*waiter // all running calls that name a request, in line or not
	held    heldHints
	stopped chan struct{}
	log     *slog.Logger
}

func newQueue(log *slog.Logger) *queue {
	return &queue{
		log:   log,
		lines: map[patron]*line{}, awaited: map[uuid.UUID]patron{}, calls: map[request][]*waiter{},
		held: heldHints{seed: maphash.MakeSeed()}, stopped: make(chan struct{}),
	}
}

// stop ends all waiting and drops all kept places.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasStopped() {
		return
	}
	close(q.stopped)
	for p := range q.lines {
		q.dropKeptPlaces(p, func(*waiter) bool { return true })
	}
}

func (q *queue) hasStopped() bool {
	select {
	case <-q.stopped:
		return true
	default:
		return false
	}
}

// enterCall registers w's call. If p's line keeps a place for its request, w takes it.
func (q *queue) enterCall(p patron, w *waiter) {
	if w.req.RequestID == uuid.Nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := request{patron: p, id: w.req.RequestID}
	q.calls[r] = append(q.calls[r], w)
	ln := q.lines[p]
	if ln == nil {
		return
	}
	i := slices.IndexFunc(ln.waiters, func(other *waiter) bool { return other.kept != nil && w.repeats(other.req.RequestID) })
	if i >= 0 {
		ln.waiters[i].kept.Stop()
		ln.waiters[i] = w
	}
}

// joinLine puts w at the end of p's line, unless w has a place. The first in line looks at
// once, because the lock may have been released since the refusal. Fault: LockQueueFull.
func (q *queue) joinLine(p patron, w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.lines[p]
	if ln == nil {
		q.lines[p] = &line{waiters: []*waiter{w}}
		w.signal(news{})
		return nil
	}
	if slices.Contains(ln.waiters, w) {
		return nil
	}
	if len(ln.waiters) >= MaxWaiting {
		return &fault.Error{Code: fault.LockQueueFull, Msg: "Too many callers wait for this patron's lock", RetryAfter: retryAfter}
	}
	ln.waiters = append(ln.waiters, w)
	return nil
}

// keepPlace keeps w's place for the next call of its request, because w's wait timed out.
// It keeps none for a call without a request id, for a call that has ended or has the
// lock, and after stop.
func (q *queue) keepPlace(ctx context.Context, p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.req.RequestID == uuid.Nil || ctx.Err() != nil || w.handed != nil || q.hasStopped() {
		return
	}
	w.kept = time.AfterFunc(placeKept, func() {
		if err := q.dropPlace(p, w); err != nil {
			q.log.ErrorContext(ctx, "a kept place was not removed", "err", err)
		}
	})
	q.lines[p].wakeFirst(news{}) // another copy of the request may look in place of w
}

// dropPlace removes w's kept place. A panic is an error, because it would end the process.
func (q *queue) dropPlace(p patron, w *waiter) (err error) {
	defer fault.Recover(&err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeWaiter(p, w, news{})
	return nil
}

// leaveLine removes w's place unless that is kept. granted is the lock that w took, or
// Nil. It returns the lock that was handed over to w meanwhile, or nil.
func (q *queue) leaveLine(p patron, w *waiter, granted uuid.UUID) *Lock {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next news
	if granted != uuid.Nil {
		q.noteGrant(p, granted)
	}
	if granted != uuid.Nil || w.handed != nil {
		next.pause = shortestPoll
	}
	if w.kept == nil {
		q.removeWaiter(p, w, next)
	}
	return w.handed
}

// leaveCall unregisters w's call, and removes its place unless that is kept.
func (q *queue) leaveCall(p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.kept == nil {
		q.removeWaiter(p, w, news{})
	}
	r := request{patron: p, id: w.req.RequestID}
	calls := slices.DeleteFunc(q.calls[r], func(other *waiter) bool { return other == w })
	if len(calls) == 0 {
		delete(q.calls, r)
		return
	}
	q.calls[r] = calls
}

// releaseRequest ends the calls of a request, and drops the places kept for it.
func (q *queue) releaseRequest(p patron, requestID uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.calls[request{patron: p, id: requestID}] {
		w.released.Store(true)
		w.end()
	}
	q.dropKeptPlaces(p, func(w *waiter) bool { return w.repeats(requestID) })
}

// dropKeptPlaces removes the kept places in p's line that match.
func (q *queue) dropKeptPlaces(p patron, match func(*waiter) bool) {
	ln := q.lines[p]
	if ln == nil {
		return
	}
	for _, w := range slices.Clone(ln.waiters) {
		if w.kept != nil && match(w) {
			w.kept.Stop()
			q.removeWaiter(p, w, news{})
		}
	}
}

// removeWaiter removes w from p's line, if it is there, and wakes a new first waiter.
func (q *queue) removeWaiter(p patron, w *waiter, next news) {
	ln := q.lines[p]
	if ln == nil {
		return
	}
	i := slices.Index(ln.waiters, w)
	if i < 0 {
		return
	}
	ln.waiters = slices.Delete(ln.waiters, i, i+1)
	if len(ln.waiters) == 0 {
		delete(q.awaited, ln.lockID)
		delete(q.lines, p)
		return
	}
	if i == 0 {
		ln.wakeFirst(next)
	}
}

// isFirst reports whether no other request in p's line is before w, which need not be in
// line. A repeat shares the turn of the first copy.
func (q *queue) isFirst(p patron, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.lines[p]
	return ln == nil || ln.isTurnOf(w)
}

// wasHeld reports whether p's lock was held a moment ago.
func (q *queue) wasHeld(p patron) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held.contains(p)
}

// noteHeld remembers that p's lock is held.
func (q *queue) noteHeld(p patron) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.add(p)
}

// noteSeen remembers the live lock that was read, and wakes the calls in the line whose
// request has it, because they can renew it.
func (q *queue) noteSeen(p patron, seen Peek) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.add(p)
	ln := q.lines[p]
	if ln == nil {
		return
	}
	q.awaitLock(p, ln, seen.LockID)
	for _, w := range ln.waiters {
		if w.repeats(seen.RequestID) {
			w.signal(news{})
		}
	}
}

// noteFree forgets that p's lock was held, and wakes the first in p's line.
func (q *queue) noteFree(p patron) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.remove(p)
	ln := q.lines[p]
	switch {
	case ln == nil:
	case ln.mustYield():
		ln.grants = 0
		ln.yields++
		ln.wakeFirst(news{pause: ln.yieldDelay()})
	default:
		ln.wakeFirst(news{take: true})
	}
}
