package sip2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"checkoutlock/circulation/internal/sip2/wire"
)

// keepFor is how long a repeat on the same connection gets the answer of the first. After that a
// refusal may have lost its reason.
const keepFor = time.Minute

// moment is how long after its deadline a message that changes records may be answered: a check-out says
// only then how it ended. It stays below margin.
const moment = 400 * time.Millisecond

// kept is the last answer of a connection that a repeat gets too.
type kept struct {
	body, sequence string
	answer         wire.Answer
	line           []byte
	at             time.Time
}

// find returns the line that answered the same request directly before. A lent item is looked at
// anew, as its loan may have ended: its handler knows it by the idempotency key.
func (k *kept) find(r wire.Request, now time.Time) ([]byte, bool) {
	lent := r.Code == wire.CheckOut && k.answer.Result == wire.OK
	return k.line, k.matches(r, now) && !lent
}

func (k *kept) matches(r wire.Request, now time.Time) bool {
	return k.line != nil && k.body == r.Body() && k.sequence == r.Sequence && now.Sub(k.at) < keepFor
}

// keep remembers an answer, and returns the line to send: the kept one, as for a repeat, if only its date
// differs. What trying again may change is not kept, nor what has no date.
func (k *kept) keep(r wire.Request, a wire.Answer, line []byte, now time.Time) (sent []byte, repeated bool) {
	if k.matches(r, now) && a.Code == k.answer.Code && slices.Equal(a.Fields, k.answer.Fields) {
		return k.line, true
	}
	*k = kept{}
	dated := r.Code != wire.Login && r.Code != wire.MachineStatus
	if dated && (a.Result == wire.OK || a.Result == wire.Refused) {
		*k = kept{body: r.Body(), sequence: r.Sequence, answer: a, line: bytes.Clone(line), at: now}
	}
	return line, false
}

// changesRecords reports whether a request must not run twice at once.
func changesRecords(code string) bool {
	switch code {
	case wire.CheckOut, wire.CheckIn, wire.Renew, wire.RenewAll, wire.FeePaid, wire.Hold:
		return true
	default:
		return false
	}
}

// flightKey is the same for a message and its repeats, on any connection.
type flightKey struct {
	tenant, login string
	body          [sha256.Size]byte
}

// flight is a message in work.
type flight struct {
	done   chan struct{}
	answer wire.Answer
}

// flights are the messages in work that change records.
type flights struct {
	mu      sync.Mutex
	running map[flightKey]*flight
}

// do answers a message by work, or with the answer of the same message that is in work already, for
// which it calls joins. It returns false a moment after the deadline of ctx. Then the work goes on, and
// a repeat gets its answer. run runs it in a goroutine. work must not panic.
func (f *flights) do(ctx context.Context, key flightKey, run func(func()), work func() wire.Answer, joins func()) (wire.Answer, bool) {
	first, joined := f.join(key)
	if joined {
		joins()
	} else {
		run(func() {
			defer f.leave(key, first)
			first.answer = work()
		})
	}
	deadline, _ := ctx.Deadline()
	select {
	case <-first.done:
		a := first.answer
		a.Repeated = a.Repeated || joined
		return a, true
	case <-time.After(time.Until(deadline) + moment):
		return wire.Answer{}, false
	}
}

func (f *flights) join(key flightKey) (*flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first, joined := f.running[key]
	if joined {
		return first, true
	}
	first = &flight{done: make(chan struct{})}
	f.running[key] = first
	return first, false
}

func (f *flights) leave(key flightKey, first *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, key)
	close(first.done)
}
