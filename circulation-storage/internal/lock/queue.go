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

// MaxWaiting is how many callers may wait for one patron in one process. Places that
// are kept for callers between two tries count too. A patron has few machines at hand:
// more than this is a client gone wild.
const MaxWaiting = 20

// retryAfter is what refused callers are told. Locks live for some hundred
// milliseconds, but the header counts in seconds.
const retryAfter = time.Second

// patron is whom a line is for.
type patron struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

// request is a call and its repeats.
type request struct {
	patron
	id uuid.UUID
}

// placeKept is how long a line keeps the place of a request whose wait ran out. The
// answer and the next try must fit in it. An abandoned place delays those behind it
// for this time at most.
const placeKept = 250 * time.Millisecond

// waiter is a caller who is in line or may join it.
type waiter struct {
	requestID uuid.UUID
	// wake holds at most one signal: look now. It comes with the head of the
	// line, with a release, and when the waiter's own request got the lock.
	wake chan struct{}
	// end ends the call.
	end context.CancelFunc
	// released is set when the request was released while the call ran.
	released atomic.Bool
	// kept removes the place of a caller that is absent. It is nil while the caller
	// is there.
	kept *time.Timer
}

func newWaiter(requestID uuid.UUID, end context.CancelFunc) *waiter {
	return &waiter{requestID: requestID, wake: make(chan struct{}, 1), end: end}
}

// repeats reports whether w is a request that was sent again.
func (w *waiter) repeats(requestID uuid.UUID) bool {
	return requestID != uuid.Nil && w.requestID == requestID
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// queue keeps the lines of waiters, first come first served. Waiters wait in their
// own goroutines. A line without places and a request without calls take no memory.
//
// The queue owns one timer for each kept place. It fires after placeKept, removes the
// place and wakes the next, although no further call comes for the patron. The queue
// stops the timer when the place is taken up again or given up, or the service stops.
type queue struct {
	mu      sync.Mutex
	lines   map[patron][]*waiter
	calls   map[request][]*waiter // all that run and name a request, in line or not
	stopped chan struct{}
}

func newQueue() *queue {
	return &queue{lines: map[patron][]*waiter{}, calls: map[request][]*waiter{}, stopped: make(chan struct{})}
}

// stop ends all waiting, and drops all kept places.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasStopped() {
		return
	}
	close(q.stopped)
	for p := range q.lines {
		q.dropKept(p, func(*waiter) bool { return true })
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

// enter notes that w's call has begun. If p's line keeps a place for its request, w
// takes it.
func (q *queue) enter(p patron, w *waiter) {
	if w.requestID == uuid.Nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := request{p, w.requestID}
	q.calls[r] = append(q.calls[r], w)
	line := q.lines[p]
	i := slices.IndexFunc(line, func(other *waiter) bool { return other.kept != nil && w.repeats(other.requestID) })
	if i >= 0 {
		line[i].kept.Stop()
		line[i] = w
	}
}

// join puts w at the end of p's line, unless w has a place already. If that is the
// head, w looks at once: the lock may have been freed since it was refused. Fault:
// LockQueueFull.
func (q *queue) join(p patron, w *waiter) error {
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

// keep keeps w's place for the next call of its request, because w's wait ran out. A
// call without a request id, one that has ended and a stopped queue keep none.
func (q *queue) keep(ctx context.Context, p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.requestID == uuid.Nil || ctx.Err() != nil || q.hasStopped() {
		return
	}
	w.kept = time.AfterFunc(placeKept, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.remove(p, w)
	})
	wakeFirst(q.lines[p]) // another copy of the request may look in w's stead
}

// leave notes that w's call has ended, and gives up its place unless that is kept.
func (q *queue) leave(p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.kept == nil {
		q.remove(p, w)
	}
	r := request{p, w.requestID}
	calls := slices.DeleteFunc(q.calls[r], func(other *waiter) bool { return other == w })
	if len(calls) == 0 {
		delete(q.calls, r)
		return
	}
	q.calls[r] = calls
}

// release ends the calls of a request, and drops the places that are kept for it.
func (q *queue) release(p patron, requestID uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.calls[request{p, requestID}] {
		w.released.Store(true)
		w.end()
	}
	q.dropKept(p, func(w *waiter) bool { return w.repeats(requestID) })
}

// dropKept removes the kept places in p's line that match.
func (q *queue) dropKept(p patron, match func(*waiter) bool) {
	for _, w := range slices.Clone(q.lines[p]) {
		if w.kept != nil && match(w) {
			w.kept.Stop()
			q.remove(p, w)
		}
	}
}

// remove takes w out of p's line, if it is there. A new head looks at once.
func (q *queue) remove(p patron, w *waiter) {
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

// wakeFirst lets the head of the line look at once, and the copies of its request,
// which share its turn.
func wakeFirst(line []*waiter) {
	for _, w := range line {
		if w == line[0] || w.repeats(line[0].requestID) {
			w.signal()
		}
	}
}

// first reports whether nobody in p's line is before w, who need not be in it: a
// request that was sent again shares the turn of the first copy.
func (q *queue) first(p patron, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[p]
	return len(line) == 0 || line[0] == w || w.repeats(line[0].requestID)
}

// wakeHead lets the first in p's line look at once.
func (q *queue) wakeHead(p patron) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wakeFirst(q.lines[p])
}

// wakeOwner lets those in p's line look at once whose request has the lock
// already: their lock is there, so they wait for nobody.
func (q *queue) wakeOwner(p patron, requestID uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.lines[p] {
		if w.repeats(requestID) {
			w.signal()
		}
	}
}
