package reporter

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// entry is a check-out that ended.
type entry struct {
	past  schemas.PastCheckOut
	ended time.Time // by the monotonic clock
}

// backlog is what there is to tell of one tenant. Recorder.mu guards it.
type backlog struct {
	newest okapi.Call // the call of the newest check-out
	// entries are the check-outs that storage has not taken, oldest first. forgotten
	// counts those that went before them, so that a batch on its way is recognised.
	entries   []entry
	forgotten int

	waiting int // check-outs that wait for a lock
	told    int // what storage was told of that last, told at toldAt
	toldAt  time.Time

	running bool      // somebody tells it now
	pause   time.Time // nothing is told before
	pauses  backoff.BackOff
	batch   int // the most check-outs in a report
}

func newBacklog() *backlog {
	return &backlog{pauses: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(interval),
		backoff.WithMaxInterval(20*time.Second), // give or take a half
		backoff.WithMaxElapsedTime(0),           // never stops
	)}
}

// news tells whether there is something to tell now.
func (b *backlog) news(now time.Time) bool {
	return len(b.entries) > 0 || b.waiting != b.told || b.waiting > 0 && now.Sub(b.toldAt) >= waitingInterval
}

// idle tells whether b can be forgotten.
func (b *backlog) idle() bool {
	return len(b.entries) == 0 && b.waiting == 0 && b.told == 0 && !b.running
}

// forget drops the n oldest entries.
func (b *backlog) forget(n int) {
	clear(b.entries[:n]) // so that their texts can go
	b.entries = b.entries[n:]
	b.forgotten += n
}

// forgetUntil drops the entries of a batch that ended before the count, but for
// those that were dropped meanwhile, and returns how many it dropped.
func (b *backlog) forgetUntil(count int) int {
	n := max(0, count-b.forgotten)
	b.forget(n)
	return n
}

// forgetOld drops entries that storage no longer takes.
func (b *backlog) forgetOld(now time.Time) (n int) {
	for n < len(b.entries) && now.Sub(b.entries[n].ended) > schemas.MaxHistoryMs*time.Millisecond {
		n++
	}
	b.forget(n)
	return n
}

// report is one on its way.
type report struct {
	schemas.CheckOutReport
	made  time.Time
	until int  // forgetUntil's count for it
	rest  bool // there were more check-outs than fit
}

// report makes the next one.
func (b *backlog) report(now time.Time) report {
	n := min(len(b.entries), b.batch)
	told := make([]schemas.PastCheckOut, n)
	for i, e := range b.entries[:n] {
		told[i] = e.past
		told[i].AgoMs = now.Sub(e.ended).Milliseconds()
	}
	return report{
		CheckOutReport: schemas.CheckOutReport{CheckOuts: told, Waiting: b.waiting},
		made:           now, until: b.forgotten + n, rest: n < len(b.entries),
	}
}

// context is that of the newest call, so that storage can be told on its behalf.
func (b *backlog) context(ctx context.Context) context.Context {
	return okapi.NewContext(ctx, b.newest)
}
