package lock

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/tenant"
)

// MaxWaiting is how many callers may wait for one patron in one process. A
// patron has few machines at hand: more than this is a client gone wild.
const MaxWaiting = 20

// retryAfter is what refused callers are told. Locks live for some hundred
// milliseconds, but the header counts in seconds.
const retryAfter = time.Second

// patron is whom a line is for.
type patron struct {
	tenant tenant.ID
	user   uuid.UUID
}

// waiter is a caller who is in line or may join it.
type waiter struct {
	requestID uuid.UUID
	// wake holds at most one signal: look now. It comes with the head of the
	// line, with a release, and when the waiter's own request got the lock.
	wake chan struct{}
}

func newWaiter(requestID uuid.UUID) *waiter {
	return &waiter{requestID: requestID, wake: make(chan struct{}, 1)}
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

// queue keeps the lines of waiters, first come first served. It has no goroutine
// and no clock: waiters wait in their own, and a line without waiters is gone.
type queue struct {
	mu      sync.Mutex
	lines   map[patron][]*waiter
	stopped chan struct{}
	stop    func()
}

func newQueue() *queue {
	q := &queue{lines: map[patron][]*waiter{}, stopped: make(chan struct{})}
	q.stop = sync.OnceFunc(func() { close(q.stopped) })
	return q
}

// join puts w at the end of p's line. If that is the head, w looks at once: the
// lock may have been freed since it was refused. Fault: LockQueueFull.
func (q *queue) join(p patron, w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[p]
	if len(line) >= MaxWaiting {
		return &fault.Error{Code: fault.LockQueueFull, Msg: "Too many callers wait for this patron's lock", RetryAfter: retryAfter}
	}
	if len(line) == 0 {
		w.signal()
	}
	q.lines[p] = append(line, w)
	return nil
}

// leave takes w out of p's line. Whoever is first then looks at once.
func (q *queue) leave(p patron, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[p]
	i := slices.Index(line, w)
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(q.lines, p)
		return
	}
	q.lines[p] = line
	if i == 0 {
		line[0].signal()
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
	if line := q.lines[p]; len(line) > 0 {
		line[0].signal()
	}
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
