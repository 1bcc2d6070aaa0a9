package lock

import (
	"context"
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

// waiter is a caller who is in line or may join it.
type waiter struct {
	requestID uuid.UUID
	// wake holds at most one signal to peek now. A waiter is woken as it becomes the
	// first in line, on a release, and if its own request got the lock.
	wake chan struct{}
	// end ends the call.
	end context.CancelFunc
	// released means that the request was released while the call ran.
	released atomic.Bool
	// kept removes the place of an absent caller. It is nil while the call runs.
	kept *time.Timer
}

func newWaiter(requestID uuid.UUID, end context.CancelFunc) *waiter {
	return &waiter{requestID: requestID, wake: make(chan struct{}, 1), end: end}
}

// repeats reports whether w is a call of the request.
func (w *waiter) repeats(requestID uuid.UUID) bool {
	return requestID != uuid.Nil && w.requestID == requestID
}

func (w *waiter) signal() {
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
	lines   map[patron][]*waiter
	calls   map[request][]*waiter // all running calls that name a request, in line or not
	stopped chan struct{}
}

func newQueue() *queue {
	return &queue{lines: map[patron][]*waiter{}, calls: map[request][]*waiter{}, stopped: make(chan struct{})}
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
	if w.requestID == uuid.Nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := request{patron: p, id: w.requestID}
	q.calls[r] = append(q.calls[r], w)
	line := q.lines[p]
	i := slices.IndexFunc(line, func(other *waiter) bool { return other.kept != nil && w.repeats(other.requestID) })
	if i >= 0 {
		line[i].kept.Stop()
		line[i] = w
	}
}

// joinLine puts w at the end of p's line, unless w has a place. The first in line peeks at
// once, because the lock may have been released since the refusal. Fault: LockQueueFull.
func (q *queue) joinLine(p patron, w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[p]
	if slices.Contains(line, w) {
		return nil
	}
	if len(line) >= MaxWaiting {
		return &fault.Error{Code: fault.LockQueueFull, Msg: "Too many callers wait for this patron's lock", RetryAfter: retryAfter}
	}
	if len(line) == 0 {
		w.signal()
	}
	q.lines[p] = append(line, w)
	return nil
}

// keepPlace keeps w's place for the next call of its request, because w's wait timed out.
// It keeps none for a call without a request id, for a call that has ended, and after
// stop.
func (q *queue) keepPlace(ctx context.Context, p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.requestID == uuid.Nil || ctx.Err() != nil || q.hasStopped() {
		return
	}
	w.kept = time.AfterFunc(placeKept, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.removeWaiter(p, w)
	})
	wakeFirst(q.lines[p]) // another copy of the request may peek in place of w
}

// leaveCall unregisters w's call, and removes its place unless that is kept.
func (q *queue) leaveCall(p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.kept == nil {
		q.removeWaiter(p, w)
	}
	r := request{patron: p, id: w.requestID}
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
	for _, w := range slices.Clone(q.lines[p]) {
		if w.kept != nil && match(w) {
			w.kept.Stop()
			q.removeWaiter(p, w)
		}
	}
}

// removeWaiter removes w from p's line, if it is there, and wakes a new first waiter.
func (q *queue) removeWaiter(p patron, w *waiter) {
	line := q.lines[p]
	i := slices.Index(line, w)
	if i < 0 {
		return
	}
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(q.lines, p)
		return
	}
	q.lines[p] = line
	if i == 0 {
		wakeFirst(line)
	}
}

// wakeFirst wakes the first in line, and the copies of its request, which share its turn.
func wakeFirst(line []*waiter) {
	for _, w := range line {
		if w == line[0] || w.repeats(line[0].requestID) {
			w.signal()
		}
	}
}

// isFirst reports whether no other request in p's line is before w, which need not be in
// line. A repeat shares the turn of the first copy.
func (q *queue) isFirst(p patron, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[p]
	return len(line) == 0 || line[0] == w || w.repeats(line[0].requestID)
}

// wakeHead wakes the first in p's line.
func (q *queue) wakeHead(p patron) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wakeFirst(q.lines[p])
}

// wakeOwner wakes the calls in p's line whose request has the lock, because they can
// renew it.
func (q *queue) wakeOwner(p patron, requestID uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.lines[p] {
		if w.repeats(requestID) {
			w.signal()
		}
	}
}
