package lock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// placeKept is how long a line keeps the place of a request whose wait timed out. The
// answer and the next try must fit in it. An abandoned place delays the callers behind it
// for this time at most.
const placeKept = 250 * time.Millisecond

// step is what a caller does next.
type step int

const (
	waitInLine    step = iota // the lock is for another caller
	readLock                  // read the lock, and take it if saw agrees
	takeLock                  // take the lock without a read
	leaveWithLock             // leave: the lock was handed over to the caller
)

// caller is one call of Acquire or RunTurn: it enters a line, may join those that wait, and leaves.
type caller struct {
	line *line
	req  Request
	end  context.CancelFunc // ends the call
	// take takes the lock. Fault: LockHeld.
	take func(context.Context) (Lock, Outcome, error)
	// runsTurn means that take releases the lock too, and is tried once. So the first in line has its
	// place from the start, and later callers of this kind wait for it without a look at the store.
	runsTurn bool
	// wake holds at most one signal to act on news. A caller that waits is woken as it becomes
	// the first in line, on a release, and if its own request got the lock.
	wake chan struct{}

	// Only the caller's own goroutine uses these.
	entersFirst bool          // no other request was before it as it entered; false once it joined
	deadline    time.Time     // of its wait
	seenAge     time.Duration // the age of the lock at its last read
	hadTurn     bool          // take took the lock, and released it again

	// The mutex of lines guards these.
	news     news
	released bool  // the request was released while the call ran
	kept     bool  // the caller is absent, and its place stays for a while
	offered  bool  // a release is handing the lock over to it
	handed   *Lock // the lock that was handed over to it
}

// news is what a woken caller does. The zero value is to read the lock.
type news struct {
	take  bool          // take the lock, which was released just now
	pause time.Duration // read the lock later
}

// join gives c the last place, unless it has one, and starts its wait. The first in line looks
// at once, because the lock may have been released since the refusal. Fault: LockQueueFull.
func (c *caller) join() error {
	ln := c.line
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	c.entersFirst, c.deadline = false, time.Now().Add(c.req.Wait)
	switch {
	case slices.Contains(ln.places, c):
		return nil
	case len(ln.places) >= MaxWaiting:
		return &fault.Error{Code: fault.LockQueueFull, Msg: "Too many callers wait for this patron's lock", RetryAfter: retryAfter}
	case len(ln.places) == 0:
		ln.turns = turns{}
		c.signal(news{})
	}
	ln.places = append(ln.places, c)
	return nil
}

// wait returns what c does next, once there is anything to do. A wait that times out keeps
// the place. Fault: LockHeld, if the time is up or the service stops.
func (c *caller) wait(ctx context.Context) (step, error) {
	timeUp := time.NewTimer(time.Until(c.deadline))
	defer timeUp.Stop()
	poll := time.NewTimer(pollDelay(c.seenAge))
	defer poll.Stop()
	for {
		polled := false
		select {
		case <-ctx.Done():
			return waitInLine, fmt.Errorf("waiting for the lock: %w", ctx.Err())
		case <-timeUp.C:
			c.keepPlace(ctx)
			return waitInLine, ErrHeld()
		case <-c.line.lines.stopped:
			return waitInLine, ErrHeld()
		case <-c.wake:
		case <-poll.C:
			polled = true
		}
		next, pause := c.readNews(polled)
		switch {
		case next != waitInLine:
			return next, nil
		case pause > 0:
			poll.Reset(pause)
		}
	}
}

// readNews returns what c does next, or waitInLine and the time until it polls. A caller that
// is not the first in line does not poll: it waits for a signal.
func (c *caller) readNews(polled bool) (step, time.Duration) {
	c.line.lines.mu.Lock()
	defer c.line.lines.mu.Unlock()
	first := c.line.isTurnOf(c)
	if polled && !first {
		return waitInLine, 0
	}
	n := c.news
	c.news = news{}
	switch {
	case c.handed != nil:
		return leaveWithLock, 0
	case c.offered:
		return waitInLine, 0 // settle wakes c
	case n.pause > 0:
		return waitInLine, n.pause
	case n.take && first:
		return takeLock, 0
	}
	return readLock, 0
}

// saw notes what c learned about the lock, and reports whether c takes it. A lock that the
// store refused has no LockID.
func (c *caller) saw(seen Peek) bool {
	ln := c.line
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	c.seenAge = seen.Age
	switch {
	case seen.Free:
		return c.entersFirst || ln.isTurnOf(c)
	case c.repeats(seen.AcquisitionID):
		return true
	}
	ln.lines.held.add(ln.patron)
	if seen.LockID == uuid.Nil {
		return false
	}
	ln.turns.noteLiveLock()
	ln.await(seen.LockID)
	for _, other := range ln.places { // the request that has the lock can renew it
		if other.repeats(seen.AcquisitionID) {
			other.signal(news{})
		}
	}
	return false
}

// keepPlace keeps c's place, if it has one, for the next call of its request. It keeps none for a call
// without an acquisition id, for a call that has ended or has the lock, and after stop.
func (c *caller) keepPlace(ctx context.Context) {
	ls := c.line.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if c.req.AcquisitionID == uuid.Nil || ctx.Err() != nil || c.handed != nil || ls.hasStopped() {
		return
	}
	c.kept = true
	time.AfterFunc(placeKept, func() { // does nothing if a later call has taken the place
		if err := c.dropKeptPlace(); err != nil {
			ls.log.ErrorContext(ctx, "a kept place was not removed", "err", err)
		}
	})
}

// dropKeptPlace removes c's place. A panic is an error, because it would end the process.
func (c *caller) dropKeptPlace() (err error) {
	defer fault.Recover(&err)
	c.line.lines.mu.Lock()
	defer c.line.lines.mu.Unlock()
	c.line.removePlace(c, news{})
	return nil
}

// leave ends c's call, and removes its place unless that is kept. granted is the lock that c
// took, or Nil. It returns the lock that was handed over to c, or nil, and whether c's request
// was released. Another leave only returns the same.
func (c *caller) leave(granted uuid.UUID) (handed *Lock, released bool) {
	ln := c.line
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	i := slices.Index(ln.callers, c)
	if i < 0 {
		return c.handed, c.released
	}
	ln.callers = slices.Delete(ln.callers, i, i+1)
	next := news{}
	if granted != uuid.Nil {
		ln.noteGrant(granted)
	}
	switch {
	case c.hadTurn:
		if len(ln.places) > 1 {
			ln.turns.noteGrant()
		}
		ln.lines.held.remove(ln.patron)
		next = ln.turns.passOn()
	case granted != uuid.Nil || c.handed != nil:
		next.pause = shortestPoll // the lock is held
	}
	if !c.kept {
		ln.removePlace(c, next)
	}
	ln.forgetIfEmpty()
	return c.handed, c.released
}

// repeats reports whether c is a call of the acquisition.
func (c *caller) repeats(acquisitionID uuid.UUID) bool {
	return acquisitionID != uuid.Nil && c.req.AcquisitionID == acquisitionID
}

// signal wakes c. The latest news counts.
func (c *caller) signal(n news) {
	c.news = n
	select {
	case c.wake <- struct{}{}:
	default: // a signal is pending
	}
}
