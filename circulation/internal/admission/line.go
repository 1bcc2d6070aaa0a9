// Package admission bounds how many check-outs a process runs at once. The others
// wait in line for a bounded time. Those that would wait in vain are refused at once. So
// overload refuses some check-outs early, and makes none of the others late.
package admission

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/span"
)

const (
	// maxWaiting bounds the memory of the line.
	maxWaiting = 10_000
	// assumedTime is how long a check-out keeps its place, while nothing is measured.
	assumedTime = 100 * time.Millisecond
	// placeShare divides the places: one patron may occupy one such part of them. The lock lets
	// only one check-out of a patron proceed, so more places would only wait.
	placeShare = 8
	// lineShare divides maxWaiting and the assumed rate in the same way: a pile of books must find
	// room in line.
	lineShare = 4
)

// Result is how the wait for a place ended.
type Result string

// The results. The check-outs of all but the first are refused.
const (
	Admitted   Result = "admitted"
	LineFull   Result = "line_full"   // refused at once: too many check-outs are before it
	PatronFull Result = "patron_full" // refused at once: too many of this patron wait
	WaitOver   Result = "wait_over"   // no place became free in time
)

// Refusals returns all results of refused check-outs.
func Refusals() []Result { return []Result{LineFull, PatronFull, WaitOver} }

// Options configure New. All fields are required.
type Options struct {
	Places int           // how many check-outs run at once
	Wait   time.Duration // how long one waits for a place
	// Entered is called for each check-out that is admitted or refused, with the time that took.
	Entered func(Result, time.Duration)
}

// Line assigns places to check-outs in the order of their arrival, except that patrons
// take turns: a patron with a pile of check-outs in line delays the next patron by one of
// them. It is safe for concurrent use.
type Line struct {
	options Options

	// full means that no place was freed since a check-out of another patron was refused. So all
	// others are refused too, without a wait for mu: thousands may come at once.
	full atomic.Bool

	mu       sync.Mutex
	admitted int
	waiting  int
	rate     rate                  // of all places
	patrons  map[patronKey]*patron // with check-outs that run or wait
	turns    list.List             // of *patron, with check-outs that wait; the first has the next turn
	deeper   []int                 // how many patrons have more than i check-outs that wait, by i
}

// patronKey names a patron by barcode, which storage compares without regard to
// case. An unknown barcode counts as a patron here.
type patronKey struct{ tenant, barcode string }

type patron struct {
	key      patronKey
	admitted int
	rate     rate          // of the places that the patron gets
	waiting  []*waiter     // in the order of arrival
	turn     *list.Element // of Line.turns; nil if none waits
}

// waiter is one check-out in line; admitted is closed when it gets a place.
type waiter struct{ admitted chan struct{} }

// New returns an empty line.
func New(o Options) *Line {
	assumed := float64(o.Places) / assumedTime.Seconds()
	return &Line{options: o, patrons: map[patronKey]*patron{}, rate: rate{assumed: assumed}}
}

// Enter waits for a place, for a bounded time, and returns the function that frees
// it. A caller whose context ends leaves the line.
//
// Faults: Overloaded if no place becomes free in time, also if that is foreseen at the entry.
// If the context ends, it returns the context's error.
func (l *Line) Enter(ctx context.Context, barcode string) (leave func(), err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for a place: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, end := span.Start(ctx, "wait for admission")
	defer end(&err)
	key := patronKey{id.String(), strings.ToLower(barcode)}
	start := time.Now()
	result, err := l.waitInLine(ctx, key)
	if err != nil {
		return nil, err
	}
	l.options.Entered(result, time.Since(start))
	if result != Admitted {
		return nil, l.newRefusal()
	}
	return sync.OnceFunc(func() { l.freePlace(key) }), nil
}

// Counts returns how many check-outs run now, and how many wait.
func (l *Line) Counts() (admitted, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admitted, l.waiting
}

// Room returns how many check-outs of different patrons may wait now.
func (l *Line) Room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.countRoom(time.Now())
}

// waitInLine returns how the wait ended, or the error of the context that ended it.
func (l *Line) waitInLine(ctx context.Context, key patronKey) (Result, error) {
	if l.full.Load() {
		return LineFull, nil
	}
	w, refused := l.joinLine(key)
	if w == nil {
		return refused, nil
	}
	return l.awaitPlace(ctx, key, w)
}

// joinLine puts a check-out into the line, and admits it if there is a place. It returns why it was
// refused if it returns no waiter.
func (l *Line) joinLine(key patronKey) (*waiter, Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, p := time.Now(), l.patrons[key]
	if p == nil {
		p = &patron{key: key, rate: rate{assumed: l.rate.assumed / lineShare}}
	}
	if !l.hasPlace(p) {
		if refused := l.judgeEntry(p, now); refused != "" {
			return nil, refused
		}
	}
	w := &waiter{admitted: make(chan struct{})}
	l.patrons[key] = p
	l.addWaiter(p, w, now)
	l.admitWaiting(now)
	return w, ""
}

// judgeEntry returns why the patron's next check-out cannot join the line, "" if it can: it would get
// its place in time at the rates of the last seconds. l.mu is held.
func (l *Line) judgeEntry(p *patron, now time.Time) Result {
	switch {
	case l.waiting >= maxWaiting || l.countAhead(p) >= l.countRoom(now):
		l.full.Store(l.admitted == l.options.Places && (l.waiting >= maxWaiting || l.turns.Len() >= l.countRoom(now)))
		return LineFull
	case len(p.waiting) >= min(maxWaiting/lineShare, max(l.share(), p.rate.placesIn(l.options.Wait, now))):
		return PatronFull
	}
	return ""
}

// countRoom returns how many places become free while a check-out waits, at least as many as there
// are. l.mu is held.
func (l *Line) countRoom(now time.Time) int {
	return min(maxWaiting, max(l.options.Places, l.rate.placesIn(l.options.Wait, now)))
}

// countAhead returns how many of those who wait get their places before the patron's next check-out.
// As patrons take turns, no patron has more of them than this one. l.mu is held.
func (l *Line) countAhead(p *patron) int {
	ahead := 0
	for _, patrons := range l.deeper[:min(len(l.deeper), len(p.waiting)+1)] {
		ahead += patrons
	}
	return ahead
}

// share returns how many places one patron may occupy.
func (l *Line) share() int { return max(1, l.options.Places/placeShare) }

// hasPlace reports whether there is a place for the patron now. l.mu is held.
func (l *Line) hasPlace(p *patron) bool {
	return l.admitted < l.options.Places && p.admitted < l.share()
}

// addWaiter puts w behind the patron's others. l.mu is held.
func (l *Line) addWaiter(p *patron, w *waiter, now time.Time) {
	if len(p.waiting) == len(l.deeper) {
		l.deeper = append(l.deeper, 0)
	}
	l.deeper[len(p.waiting)]++
	l.waiting++
	p.waiting = append(p.waiting, w)
	p.rate.update(now, true)
	if p.turn == nil {
		p.turn = l.turns.PushBack(p)
	}
}

// removeWaiter removes the patron's i-th check-out from the line. l.mu is held.
func (l *Line) removeWaiter(p *patron, i int, now time.Time) {
	l.full.Store(false)
	p.waiting = slices.Delete(p.waiting, i, i+1)
	l.deeper[len(p.waiting)]--
	l.waiting--
	p.rate.update(now, len(p.waiting) > 0)
	if len(p.waiting) == 0 {
		l.turns.Remove(p.turn)
		p.turn = nil
	}
}

// admitWaiting assigns the free places. l.mu is held.
func (l *Line) admitWaiting(now time.Time) {
	for p := l.findNext(); p != nil; p = l.findNext() {
		close(p.waiting[0].admitted)
		l.turns.MoveToBack(p.turn)
		l.removeWaiter(p, 0, now)
		l.admitted++
		p.admitted++
	}
	l.rate.update(now, l.admitted == l.options.Places)
}

// findNext returns the patron who gets a free place next, nil if there is none. l.mu is held.
func (l *Line) findNext() *patron {
	if l.admitted == l.options.Places {
		return nil
	}
	for e := l.turns.Front(); e != nil; e = e.Next() {
		if p, ok := e.Value.(*patron); ok && l.hasPlace(p) {
			return p
		}
	}
	return nil
}

// awaitPlace waits until w has its place or its time is over. It returns the error of a context that
// ends before.
func (l *Line) awaitPlace(ctx context.Context, key patronKey, w *waiter) (Result, error) {
	select {
	case <-w.admitted:
		return Admitted, nil
	case <-ctx.Done():
		if !l.leaveLine(key, w) { // it was admitted at the same moment
			l.freePlace(key)
		}
		return "", ctx.Err()
	case <-time.After(l.options.Wait):
		if !l.leaveLine(key, w) {
			return Admitted, nil
		}
		return WaitOver, nil
	}
}

// leaveLine removes w from the line; it returns false if w has its place already.
func (l *Line) leaveLine(key patronKey, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return false
	}
	l.removeWaiter(p, i, time.Now())
	l.dropIdle(p)
	return true
}

// freePlace frees the place of a check-out of the patron.
func (l *Line) freePlace(key patronKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, p := time.Now(), l.patrons[key]
	l.full.Store(false)
	l.rate.countFreed(now)
	p.rate.countFreed(now)
	p.admitted--
	l.admitted--
	l.dropIdle(p)
	l.admitWaiting(now)
}

// dropIdle drops a patron without check-outs. l.mu is held.
func (l *Line) dropIdle(p *patron) {
	if p.admitted == 0 && len(p.waiting) == 0 {
		delete(l.patrons, p.key)
	}
}

// newRefusal returns the fault of a check-out that was not begun. Its RetryAfter is the time after
// which all who wait now have been admitted or refused.
func (l *Line) newRefusal() error {
	return &fault.Error{
		Code:       fault.Overloaded,
		Msg:        "Too many check-outs at once: this one was not begun, try it again later",
		RetryAfter: max(time.Second, l.options.Wait),
	}
}
