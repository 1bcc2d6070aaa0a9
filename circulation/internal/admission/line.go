// Package admission bounds how many check-outs a process runs at once. The others
// wait in line for a bounded time, and a full line admits no more. So overload refuses
// some check-outs early, and makes none of the others late.
package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// lineLength is the length of the line, as a multiple of the number of places.
	lineLength = 8
	// placeShare and lineShare divide the places and the line: one patron may occupy
	// one such part of each. The lock lets only one check-out of a
	// patron proceed, so more places would only wait. But a pile of books must
	// find room in line.
	placeShare = 8
	lineShare  = 4
)

// Reason is why a check-out was refused.
type Reason string

// The reasons.
const (
	LineFull   Reason = "line_full"   // refused at once
	PatronFull Reason = "patron_full" // refused at once: too many of this patron wait
	WaitOver   Reason = "wait_over"   // no place became free in time
)

// Reasons returns all of them.
func Reasons() []Reason { return []Reason{LineFull, PatronFull, WaitOver} }

// Options configure New. All fields are required.
type Options struct {
	Places  int           // how many check-outs run at once
	Wait    time.Duration // how long one waits for a place
	Refused func(Reason)  // is called for each refused check-out
}

// Line assigns places to check-outs in the order of their arrival, except that patrons
// take turns: a patron with a pile of check-outs in line delays the next patron by one of
// them. It is safe for concurrent use.
type Line struct {
	options Options

	mu       sync.Mutex
	admitted int
	waiting  int
	patrons  map[patronKey]*patron // with check-outs that run or wait
	turns    []*patron             // with check-outs that wait; the first has the next turn
}

// patronKey names a patron by barcode, which storage compares without regard to
// case. An unknown barcode counts as a patron here.
type patronKey struct{ tenant, barcode string }

type patron struct {
	key      patronKey
	admitted int
	waiting  []*waiter // in the order of arrival
}

// waiter is one check-out in line; admitted is closed when it gets a place.
type waiter struct{ admitted chan struct{} }

// New returns an empty line.
func New(o Options) *Line {
	return &Line{options: o, patrons: map[patronKey]*patron{}}
}

// Enter waits for a place, for a bounded time, and returns the function that frees
// it. A caller whose context ends leaves the line.
//
// Faults: Overloaded if no place becomes free in time, or too many wait already.
// If the context ends, it returns the context's error.
func (l *Line) Enter(ctx context.Context, barcode string) (leave func(), err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for a place: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := patronKey{id.String(), strings.ToLower(barcode)}
	w, err := l.joinLine(key)
	if err != nil {
		return nil, err
	}
	if err := l.awaitPlace(ctx, key, w); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.freePlace(key) }), nil
}

// Counts returns how many check-outs run now, and how many wait.
func (l *Line) Counts() (admitted, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admitted, l.waiting
}

// joinLine puts a check-out into the line, and admits it if there is a place.
func (l *Line) joinLine(key patronKey) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	if p == nil {
		p = &patron{key: key}
	}
	if !l.hasPlace(p) {
		switch {
		case l.waiting >= lineLength*l.options.Places:
			return nil, l.refuseEntry(LineFull)
		case len(p.waiting) >= max(1, lineLength*l.options.Places/lineShare):
			return nil, l.refuseEntry(PatronFull)
		}
	}
	w := &waiter{admitted: make(chan struct{})}
	l.patrons[key] = p
	p.waiting = append(p.waiting, w)
	if len(p.waiting) == 1 {
		l.turns = append(l.turns, p)
	}
	l.waiting++
	l.admitWaiting()
	return w, nil
}

// hasPlace reports whether there is a place for the patron now. l.mu is held.
func (l *Line) hasPlace(p *patron) bool {
	return l.admitted < l.options.Places && p.admitted < max(1, l.options.Places/placeShare)
}

// admitWaiting assigns the free places. l.mu is held.
func (l *Line) admitWaiting() {
	for {
		i := slices.IndexFunc(l.turns, l.hasPlace)
		if i < 0 {
			return
		}
		p := l.turns[i]
		w := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		l.turns = slices.Delete(l.turns, i, i+1)
		if len(p.waiting) > 0 {
			l.turns = append(l.turns, p)
		}
		l.waiting--
		l.admitted++
		p.admitted++
		close(w.admitted)
	}
}

// awaitPlace returns nil once w has its place.
func (l *Line) awaitPlace(ctx context.Context, key patronKey, w *waiter) error {
	timer := time.NewTimer(l.options.Wait)
	defer timer.Stop()
	var err error
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	if !l.leaveLine(key, w) { // it was admitted at the same moment
		if err != nil {
			l.freePlace(key)
		}
		return err
	}
	if err == nil {
		err = l.refuseEntry(WaitOver)
	}
	return err
}

// leaveLine removes w from the line; it returns false if w has its place already.
func (l *Line) leaveLine(key patronKey, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	if p == nil {
		return false
	}
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	l.waiting--
	if len(p.waiting) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(other *patron) bool { return other == p })
	}
	l.dropIdle(p)
	return true
}

// freePlace frees the place of a check-out of the patron.
func (l *Line) freePlace(key patronKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	p.admitted--
	l.admitted--
	l.dropIdle(p)
	l.admitWaiting()
}

// dropIdle drops a patron without check-outs. l.mu is held.
func (l *Line) dropIdle(p *patron) {
	if p.admitted == 0 && len(p.waiting) == 0 {
		delete(l.patrons, p.key)
	}
}

// refuseEntry returns the fault of a check-out that was not begun. Its RetryAfter is the time
// after which all who wait now have been admitted or refused.
func (l *Line) refuseEntry(why Reason) error {
	l.options.Refused(why)
	return &fault.Error{
		Code:       fault.Overloaded,
		Msg:        "Too many check-outs at once: this one was not begun, try it again later",
		RetryAfter: max(time.Second, l.options.Wait),
	}
}
