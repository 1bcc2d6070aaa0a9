package lock

import (
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

// MaxWaiting is how many callers may wait for one patron in one process. Kept places
// count too. A patron uses few machines, so more callers mean a broken client.
const MaxWaiting = 20

// patron identifies a line.
type patron struct {
	tenant okapi.Tenant
	user   uuid.UUID
}

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
	i := slices.IndexFunc(ln.places, func(other *caller) bool { return other.kept && other.repeats(c.req.AcquisitionID) })
	switch {
	case i >= 0:
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
		if c.kept && match(c) {
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
