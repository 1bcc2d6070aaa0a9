package reporter

import (
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// ending is a finished check-out.
type ending struct {
	past  schemas.PastCheckOut
	ended time.Time // by the monotonic clock
}

// wait is a check-out that waits for a lock.
type wait struct {
	checkout.Wait
	requestID, machine string
}

// backlog is what has to be reported of one tenant. Recorder.mu guards it.
type backlog struct {
	newest okapi.Call // the call of the newest check-out, whose rights a report uses
	// endings are the check-outs that storage has not accepted, oldest first.
	endings []ending
	removed int // endings removed so far, which gives each ending a number

	waits           map[string]wait // for a lock, by acquisition
	reportedWaiting int             // how many were in the last report
	reportedAt      time.Time

	sending   bool      // a report is under way
	pauseEnds time.Time // no report is sent before
	pauses    backoff.BackOff
	batch     int // the most check-outs in a report
}

func newBacklog() *backlog {
	return &backlog{waits: map[string]wait{}, pauses: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(interval),
		backoff.WithMaxInterval(20*time.Second), // plus or minus a half
		backoff.WithMaxElapsedTime(0),           // never stops
	)}
}

// isDue reports whether there is something to report now, without regard to pauses.
func (b *backlog) isDue(now time.Time) bool {
	return len(b.endings) > 0 || len(b.waits) != b.reportedWaiting || len(b.waits) > 0 && now.Sub(b.reportedAt) >= waitingInterval
}

// isIdle reports whether the recorder can drop the backlog.
func (b *backlog) isIdle() bool {
	return len(b.endings) == 0 && len(b.waits) == 0 && b.reportedWaiting == 0 && !b.sending
}

// removeOldest removes the n oldest endings.
func (b *backlog) removeOldest(n int) {
	clear(b.endings[:n]) // frees their texts
	b.endings = b.endings[n:]
	b.removed += n
}

// removeReported removes the endings of a report and returns their number. Some of them may
// have been removed meanwhile.
func (b *backlog) removeReported(r report) int {
	n := max(0, r.end-b.removed)
	b.removeOldest(n)
	return n
}

// removeOutdated removes the endings that are too old for storage and returns their number.
func (b *backlog) removeOutdated(now time.Time) (n int) {
	for n < len(b.endings) && now.Sub(b.endings[n].ended) > schemas.MaxHistoryMs*time.Millisecond {
		n++
	}
	b.removeOldest(n)
	return n
}

// report is a report under way.
type report struct {
	content schemas.CheckOutReport
	made    time.Time
	end     int  // the number of the first ending after it
	partial bool // there were more check-outs than fit
}

// makeReport makes the next report.
func (b *backlog) makeReport(now time.Time, version string) report {
	n := min(len(b.endings), b.batch)
	past := make([]schemas.PastCheckOut, n)
	for i, e := range b.endings[:n] {
		past[i] = e.past
		past[i].AgoMs = now.Sub(e.ended).Milliseconds()
	}
	return report{
		content: schemas.CheckOutReport{CheckOuts: past, Waiting: len(b.waits), Waits: b.listWaits(now), Version: version},
		made:    now, end: b.removed + n, partial: n < len(b.endings),
	}
}

// listWaits returns the waits, longest first, as many as fit.
func (b *backlog) listWaits(now time.Time) []schemas.LockWait {
	waits := slices.SortedFunc(maps.Values(b.waits), func(x, y wait) int { return x.Began.Compare(y.Began) })
	var list []schemas.LockWait
	for _, w := range waits[:min(len(waits), schemas.MaxReportedWaits)] {
		list = append(list, schemas.LockWait{
			UserID: library.KeepUUID(w.UserID), RequestID: w.requestID, ServicePointID: library.KeepUUID(w.ServicePointID), Machine: w.machine,
			WaitedMs: int64(milliseconds(now.Sub(w.Began))),
		})
	}
	return list
}

// noteAnswer records how storage answered a report. It returns whether another report must follow
// at once, and how many check-outs were dropped because storage will never accept them.
func (b *backlog) noteAnswer(r report, err error) (more bool, refused int) {
	switch {
	case err == nil:
		b.removeReported(r)
	case fault.Is(err, fault.TooLarge) && len(r.content.CheckOuts) > 1:
		b.batch = len(r.content.CheckOuts) / 2
		return true, 0
	case fault.Is(err, fault.UnknownTenant): // a caller's mistake: no history misses its check-outs
		b.removeReported(r)
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Malformed), fault.Is(err, fault.TooLarge):
		refused = b.removeReported(r)
	default:
		b.pauseEnds = time.Now().Add(b.pauses.NextBackOff())
		return false, 0
	}
	// A refused figure counts as reported too: the next report follows when the figure changes
	// or is due again.
	b.reportedWaiting, b.reportedAt = r.content.Waiting, r.made
	b.pauses.Reset()
	b.batch = min(2*b.batch, schemas.MaxHistoryBatch)
	return r.partial, refused
}
