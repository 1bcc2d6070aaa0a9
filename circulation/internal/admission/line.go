// Package admission bounds how many check-outs a process works on at once. The
// others wait in line for a bounded time, and a line of full length takes no more
// in. So overload refuses some check-outs early, and makes none of the others late.
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
	// lineLength is the length of the line, in times the number of places.
	lineLength = 8
	// placeShare and lineShare are the parts of the places and of the line that one
	// patron may take up: one in so many. The lock lets only one check-out of a
	// patron proceed, so more places would only wait; but a pile of books has to
	// find room in line.
	placeShare = 8
	lineShare  = 4
)

// Reason says why a check-out was refused.
type Reason string

// The reasons.
const (
	LineFull   Reason = "line_full"   // refused at once
	PatronFull Reason = "patron_full" // refused at once: too many of this patron wait
	WaitOver   Reason = "wait_over"   // it waited in vain
)

// Reasons returns all of them.
func Reasons() []Reason { return []Reason{LineFull, PatronFull, WaitOver} }

// Options configure New. All fields are required.
type Options struct {
	Places  int           // how many work at once
	Wait    time.Duration // how long one waits for a place
	Refused func(Reason)  // is called for each one that is refused
}

// Line gives out places. Those who wait for one are served in the order in which
// they came, except that patrons take turns: a patron with a pile of check-outs in
// line delays the next patron by one of them. It is safe for concurrent use.
type Line struct {
	options Options

	mu       sync.Mutex
	admitted int
	waiting  int
	patrons  map[patronKey]*patron // with check-outs that work or wait
	turns    []*patron             // with check-outs that wait; the first is served next
}

// patronKey names a patron by barcode, which storage compares without regard to
// case. A barcode that no patron has is a patron of its own here.
type patronKey struct{ tenant, barcode string }

type patron struct {
	key      patronKey
	admitted int
	waiting  []*waiter // the first came first
}

// waiter is one check-out; admitted is closed when it gets its place.
type waiter struct{ admitted chan struct{} }

// New returns an empty line.
func New(o Options) *Line {
	return &Line{options: o, patrons: map[patronKey]*patron{}}
}

// Enter waits for a place, for a bounded time, and returns the function that gives
// it back. A caller whose context ends gives up its place in line.
//
// Faults: Overloaded when there is no place in time, or too many wait already;
// the context's error when that ends.
func (l *Line) Enter(ctx context.Context, barcode string) (leave func(), err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for a place: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := patronKey{id.String(), strings.ToLower(barcode)}
	w, err := l.join(key)
	if err != nil {
		return nil, err
	}
	if err := l.await(ctx, key, w); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.leave(key) }), nil
}

// Counts returns how many work now, and how many wait.
func (l *Line) Counts() (admitted, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admitted, l.waiting
}

// join puts a check-out into the line, and admits it if there is a place.
func (l *Line) join(key patronKey) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	if p == nil {
		p = &patron{key: key}
	}
	if !l.hasPlace(p) {
		switch {
		case l.waiting >= lineLength*l.options.Places:
			return nil, l.refuse(LineFull)
		case len(p.waiting) >= max(1, lineLength*l.options.Places/lineShare):
			return nil, l.refuse(PatronFull)
		}
	}
	w := &waiter{admitted: make(chan struct{})}
	l.patrons[key] = p
	if p.waiting = append(p.waiting, w); len(p.waiting) == 1 {
		l.turns = append(l.turns, p)
	}
	l.waiting++
	l.admit()
	return w, nil
}

// hasPlace reports whether the patron would be admitted now.
func (l *Line) hasPlace(p *patron) bool {
	return l.admitted < l.options.Places && p.admitted < max(1, l.options.Places/placeShare)
}

// admit gives free places to those who wait.
func (l *Line) admit() {
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

// await returns nil once w has its place.
func (l *Line) await(ctx context.Context, key patronKey, w *waiter) error {
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
	if !l.giveUp(key, w) { // it was admitted in the same moment
		if err != nil {
			l.leave(key)
		}
		return err
	}
	if err == nil {
		err = l.refuse(WaitOver)
	}
	return err
}

// giveUp takes w out of the line; false when it has its place already.
func (l *Line) giveUp(key patronKey, w *waiter) bool {
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
	l.forget(p)
	return true
}

// leave gives a place back.
func (l *Line) leave(key patronKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.patrons[key]
	p.admitted--
	l.admitted--
	l.forget(p)
	l.admit()
}

// forget drops a patron without check-outs.
func (l *Line) forget(p *patron) {
	if p.admitted == 0 && len(p.waiting) == 0 {
		delete(l.patrons, p.key)
	}
}

// refuse returns the fault of a check-out that was not begun. By the time that it
// names, all who wait now have been admitted or refused.
func (l *Line) refuse(why Reason) error {
	l.options.Refused(why)
	return &fault.Error{
		Code:       fault.Overloaded,
		Msg:        "Too many check-outs at once: this one was not begun, try it again later",
		RetryAfter: max(time.Second, l.options.Wait),
	}
}
