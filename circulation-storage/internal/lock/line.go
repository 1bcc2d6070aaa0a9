package lock

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

const (
	// A process grants a patron's lock to its own waiters for at most maxGrants times or
	// longestRun in a row. Then it frees the lock and yields: it waits a moment, so that a
	// waiter of another process finds the lock free.
	maxGrants  = 8
	longestRun = 100 * time.Millisecond
	// longestYield bounds that moment.
	longestYield = 10 * time.Millisecond
	// A yield that no other process uses doubles the next run, but not more than
	// maxDoublings times, because a yield costs as much as several hand-overs.
	maxDoublings = 2
)

// line is the callers who wait for one patron's lock, first come, first served. The
// queue's mutex guards it.
type line struct {
	waiters []*waiter
	// lockID is the lock that they wait for, as last seen; Nil if unknown. It is a hint.
	lockID    uuid.UUID
	grants    int       // to this line in a row
	runBegan  time.Time // the first of these grants
	lastGrant time.Time
	yields    int // in a row that no other process used
}

// isTurnOf reports whether w is the first in line, or a copy of its request.
func (ln *line) isTurnOf(w *waiter) bool {
	return ln.waiters[0] == w || w.repeats(ln.waiters[0].req.RequestID)
}

// wakeFirst wakes the first in line, and the copies of its request, which share its turn.
func (ln *line) wakeFirst(n news) {
	for _, w := range ln.waiters {
		if ln.isTurnOf(w) {
			w.signal(n)
		}
	}
}

// mustYield reports whether other processes come next.
func (ln *line) mustYield() bool {
	doublings := min(ln.yields, maxDoublings)
	return ln.grants >= maxGrants<<doublings || ln.grants > 0 && time.Since(ln.runBegan) >= longestRun<<doublings
}

// yieldDelay is how long the first in line leaves a free lock to other processes. It is
// longer than the time between two polls for the lock as old as it was.
func (ln *line) yieldDelay() time.Duration {
	return min(pollDelay(time.Since(ln.lastGrant))+shortestPoll, longestYield)
}

// noteGrant remembers a grant to a caller of p's line.
func (q *queue) noteGrant(p patron, lockID uuid.UUID) {
	ln := q.lines[p]
	if ln == nil {
		return
	}
	ln.lastGrant = time.Now()
	if ln.grants == 0 {
		ln.runBegan = ln.lastGrant
	}
	ln.grants++
	q.indexLock(p, ln, lockID)
}

// awaitLock remembers which live lock p's line waits for. If the line has yielded and got
// no lock since, another process has used the yield.
func (q *queue) awaitLock(p patron, ln *line, lockID uuid.UUID) {
	if ln.grants == 0 {
		ln.yields = 0
	}
	q.indexLock(p, ln, lockID)
}

func (q *queue) indexLock(p patron, ln *line, lockID uuid.UUID) {
	delete(q.awaited, ln.lockID)
	ln.lockID = lockID
	q.awaited[lockID] = p
}

// offerLock returns the waiter that gets the tenant's lock in a hand-over, and marks it. It
// returns nil if there is none, and if other processes come next. The caller calls
// settleOffer for the waiter.
func (q *queue) offerLock(tenant okapi.Tenant, lockID uuid.UUID) (patron, *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, known := q.awaited[lockID]
	if !known || p.tenant != tenant {
		return patron{}, nil
	}
	ln := q.lines[p]
	if ln.mustYield() {
		return patron{}, nil
	}
	i := slices.IndexFunc(ln.waiters, func(w *waiter) bool { return ln.isTurnOf(w) && w.kept == nil })
	if i < 0 || ln.waiters[i].offered {
		return patron{}, nil
	}
	ln.waiters[i].offered = true
	return p, ln.waiters[i]
}

// settleOffer gives w the lock that was handed over to it, and reports whether w was there
// to take it. Without a lock, w looks for itself.
func (q *queue) settleOffer(p patron, w *waiter, handed *Lock) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.offered = false
	ln := q.lines[p]
	if handed == nil || ln == nil || w.kept != nil || !slices.Contains(ln.waiters, w) {
		w.signal(news{})
		return false
	}
	w.handed = handed
	q.held.add(p)
	q.noteGrant(p, handed.ID)
	ln.wakeFirst(news{}) // copies of the request find its lock
	return true
}

// readNews returns what w does now, and whether it has a lock, or is about to get one.
func (q *queue) readNews(w *waiter) (n news, served, offered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, w.news = w.news, news{}
	return n, w.handed != nil, w.offered
}
