package lock

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// MaxWaiting is how many callers may wait for one patron in one process. Kept places
// count too. A patron uses few machines, so more callers mean a broken client.
const MaxWaiting = 20

// placeKept is how long a line keeps the place of a request whose wait timed out. The
// answer and the next try must fit in it. An abandoned place delays the callers behind it
// for this time at most.
const placeKept = 250 * time.Millisecond

// patron identifies a line.
type patron struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

// step is what a caller does next.
type step int

const (
	waitInLine    step = iota // the lock is for another caller
	readLock                  // read the lock, and take it if saw agrees
	takeLock                  // take the lock without a read
	leaveWithLock             // leave: the lock was handed over to the caller
)

// lines are the lines of one process. One mutex guards them all. Callers wait in their own
// goroutines. A line without callers and kept places uses no memory.
type lines struct {
	mu       sync.Mutex
	byPatron map[patron]*line
	awaited  map[uuid.UUID]*line // by line.lockID
	held     heldHints
	stopped  chan struct{}
	log      *slog.Logger
}

// line is the callers for one patron's lock. Those that wait have a place.
type line struct {
	lines   *lines
	patron  patron
	callers []*caller // all whose call runs, with a place or without
	places  []*caller // first come, first served; with the kept places
	// lockID is the lock that the line waits for, as last seen; Nil if unknown. It is a hint.
	lockID uuid.UUID
	turns  turns
}

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
	released bool        // the request was released while the call ran
	kept     *time.Timer // removes the place of an absent caller; nil while the call runs
	offered  bool        // a release is handing the lock over to it
	handed   *Lock       // the lock that was handed over to it
}

// news is what a woken caller does. The zero value is to read the lock.
type news struct {
	take  bool          // take the lock, which was released just now
	pause time.Duration // read the lock later
}

func newLines(log *slog.Logger) *lines {
	return &lines{
		byPatron: map[patron]*line{}, awaited: map[uuid.UUID]*line{},
		held: heldHints{seed: maphash.MakeSeed()}, stopped: make(chan struct{}), log: log,
	}
}

// enter registers a call, and returns what it does first. If the line keeps a place for the
// request, the call takes it.
func (ls *lines) enter(p patron, c *caller) step {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.byPatron[p]
	if ln == nil {
		ln = &line{lines: ls, patron: p}
		ls.byPatron[p] = ln
	}
	c.line, c.wake = ln, make(chan struct{}, 1)
	ln.callers = append(ln.callers, c)
	i := slices.IndexFunc(ln.places, func(other *caller) bool { return other.kept != nil && other.repeats(c.req.AcquisitionID) })
	switch {
	case i >= 0:
		ln.places[i].kept.Stop()
		ln.places[i] = c
	case c.runsTurn && len(ln.places) == 0:
		ln.places, ln.turns = append(ln.places, c), turns{}
	}
	c.entersFirst = ln.isTurnOf(c)
	switch {
	case c.entersFirst && (c.runsTurn || !ls.held.contains(p)):
		return takeLock
	case c.runsTurn:
		return waitInLine
	case c.entersFirst || c.req.AcquisitionID != uuid.Nil: // the request may have the lock
		return readLock
	}
	return waitInLine
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
	if c.kept != nil || c.req.AcquisitionID == uuid.Nil || ctx.Err() != nil || c.handed != nil || ls.hasStopped() {
		return
	}
	c.kept = time.AfterFunc(placeKept, func() {
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
	if c.kept == nil {
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

// isTurnOf reports whether no other request is before c, which need not have a place. A
// repeat shares the turn of the first copy.
func (ln *line) isTurnOf(c *caller) bool {
	return len(ln.places) == 0 || ln.places[0] == c || c.repeats(ln.places[0].req.AcquisitionID)
}

// wakeFirst wakes the first in line, and the copies of its request, which share its turn.
func (ln *line) wakeFirst(n news) {
	for _, c := range ln.places {
		if ln.isTurnOf(c) {
			c.signal(n)
		}
	}
}

// removePlace removes c's place, if it has one, and wakes a new first caller.
func (ln *line) removePlace(c *caller, next news) {
	i := slices.Index(ln.places, c)
	if i < 0 {
		return
	}
	ln.places = slices.Delete(ln.places, i, i+1)
	if i == 0 {
		ln.wakeFirst(next)
	}
	ln.forgetIfEmpty()
}

// dropKeptPlaces removes the kept places that match.
func (ln *line) dropKeptPlaces(match func(*caller) bool) {
	for _, c := range slices.Clone(ln.places) {
		if c.kept != nil && match(c) {
			c.kept.Stop()
			ln.removePlace(c, news{})
		}
	}
}

// forgetIfEmpty frees the memory of a line without callers and kept places.
func (ln *line) forgetIfEmpty() {
	if len(ln.callers) == 0 && len(ln.places) == 0 {
		delete(ln.lines.awaited, ln.lockID)
		delete(ln.lines.byPatron, ln.patron)
	}
}

// noteGrant notes a grant to a caller of the line. It counts no turn while no caller waits.
func (ln *line) noteGrant(lockID uuid.UUID) {
	ln.lines.held.add(ln.patron)
	if len(ln.places) > 0 {
		ln.turns.noteGrant()
		ln.await(lockID)
	}
}

// await notes which live lock the line waits for.
func (ln *line) await(lockID uuid.UUID) {
	delete(ln.lines.awaited, ln.lockID)
	ln.lockID = lockID
	ln.lines.awaited[lockID] = ln
}

// releaseAcquisition ends the calls of an acquisition, and drops the places kept for it.
func (ls *lines) releaseAcquisition(p patron, acquisitionID uuid.UUID) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.byPatron[p]
	if ln == nil {
		return
	}
	for _, c := range ln.callers {
		if c.repeats(acquisitionID) {
			c.released = true
			c.end()
		}
	}
	ln.dropKeptPlaces(func(c *caller) bool { return c.repeats(acquisitionID) })
}

// stop ends all waiting and drops all kept places.
func (ls *lines) stop() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.hasStopped() {
		return
	}
	close(ls.stopped)
	for _, ln := range ls.byPatron {
		ln.dropKeptPlaces(func(*caller) bool { return true })
	}
}

func (ls *lines) hasStopped() bool {
	select {
	case <-ls.stopped:
		return true
	default:
		return false
	}
}
