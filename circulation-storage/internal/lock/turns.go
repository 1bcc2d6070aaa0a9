package lock

import "time"

// The first in line looks for a release through another process after a quarter of the
// lock's age, in these bounds. So waiting grows by a quarter, or by longestPoll, at most.
const (
	shortestPoll = 1500 * time.Microsecond
	longestPoll  = 40 * time.Millisecond
)

// pollDelay is how long the first in line waits before it reads a lock of that age again.
// A lock of the future, which a clock that was set back left, gets the longest delay.
func pollDelay(age time.Duration) time.Duration {
	if age < 0 {
		return longestPoll
	}
	return min(max(age/4, shortestPoll), longestPoll)
}

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

// turns says when a line yields a patron's lock to other processes. The zero value has had
// no grant.
type turns struct {
	grants    int       // to this line in a row
	runBegan  time.Time // the first of these grants
	lastGrant time.Time
	yields    int // in a row that no other process used
}

// noteGrant counts a grant to the line.
func (t *turns) noteGrant() {
	t.lastGrant = time.Now()
	if t.grants == 0 {
		t.runBegan = t.lastGrant
	}
	t.grants++
}

// noteLiveLock is called as the line sees a live lock. If the line has yielded and got no
// lock since, another process has used the yield.
func (t *turns) noteLiveLock() {
	if t.grants == 0 {
		t.yields = 0
	}
}

// mustYield reports whether other processes come next.
func (t *turns) mustYield() bool {
	doublings := min(t.yields, maxDoublings)
	return t.grants >= maxGrants<<doublings || t.grants > 0 && time.Since(t.runBegan) >= longestRun<<doublings
}

// passOn returns what the first in line does with a lock that was released: it takes it, or leaves
// it to other processes first.
func (t *turns) passOn() news {
	if t.mustYield() {
		return news{pause: t.yield()}
	}
	return news{take: true}
}

// yield ends the run. It returns how long the first in line leaves the free lock to other
// processes: longer than the time between two polls for the lock as old as it was.
func (t *turns) yield() time.Duration {
	t.grants = 0
	t.yields++
	return min(pollDelay(time.Since(t.lastGrant))+shortestPoll, longestYield)
}
