// Package reporter reports finished check-outs, and those that wait for a patron's
// lock, to storage asynchronously. It keeps reports in memory and sends them in
// batches, so no check-out waits. A process that dies loses what it has not sent.
package reporter

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
	"checkoutlock/schemas/redact"
)

const (
	// interval is how often the recorder looks for something to report.
	interval = 500 * time.Millisecond
	// waitingInterval is how often it repeats that check-outs wait. Storage trusts the
	// figure for 5 s.
	waitingInterval = time.Second
	// maxEndings bounds the check-outs that are kept of one tenant, and maxTenants the
	// tenants: an outage of storage must not fill the memory. Many tenants share maxShared.
	// If they come one after the other, some five times as many are kept at worst. An
	// ending has 1 to 3 KB.
	maxEndings = 1000
	maxTenants = 1000
	maxShared  = 20_000
	// flushTimeout bounds the last reports, at the stop.
	flushTimeout = 2 * time.Second
	// logEvery is how often the log repeats that reports fail.
	logEvery = 10 * time.Second
)

// Storage keeps the history of the tenant in ctx.
type Storage interface {
	// Report keeps the report of one instance; it keeps a check-out that is reported again
	// once. Faults of a report that it will never accept: Invalid, Malformed,
	// UnknownTenant, TooLarge.
	Report(ctx context.Context, report schemas.CheckOutReport) error
}

// Recorder reports to storage what it observes. It is safe for concurrent use.
type Recorder struct {
	storage Storage
	dropped func(n int)
	log     *slog.Logger
	version string

	sending sync.WaitGroup // the reports under way
	slots   chan struct{}  // bounds them

	mu      sync.Mutex
	tenants map[okapi.Tenant]*backlog
	logged  time.Time // when a failure was last logged
}

// NewRecorder returns a recorder, which sends nothing before Run. It calls dropped with the number
// of check-outs that the history will miss. The version is that of this build.
func NewRecorder(storage Storage, version string, dropped func(n int), log *slog.Logger) *Recorder {
	return &Recorder{
		storage: storage, dropped: dropped, log: log, version: version,
		slots: make(chan struct{}, maxAtOnce), tenants: map[okapi.Tenant]*backlog{},
	}
}

// Ended notes the end of a check-out.
func (r *Recorder) Ended(ctx context.Context, e checkout.Ending) {
	info, now := okapi.FromContext(ctx), time.Now()
	past := describeEnding(e)
	past.ID, past.RequestID = uuid.NewString(), cutText(info.RequestID, schemas.MaxHistoryText)
	past.Machine = cutText(info.Machine, schemas.MaxMachineName)
	past.StaffID = library.KeepUUID(info.UserID)
	if n := r.addEnding(ctx, info, ending{past: past, ended: now}); n > 0 {
		r.dropped(n)
	}
}

// addEnding returns how many check-outs had to be dropped for it, this one or older ones.
func (r *Recorder) addEnding(ctx context.Context, info okapi.Call, e ending) (dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.getBacklog(ctx, info)
	if b == nil {
		return 1
	}
	most := min(maxEndings, maxShared/len(r.tenants))
	dropped = max(0, len(b.endings)+1-most)
	b.removeOldest(dropped)
	b.endings = append(b.endings, e)
	return dropped
}

// WaitBegan notes a check-out that tries for a lock.
func (r *Recorder) WaitBegan(ctx context.Context, w checkout.Wait) {
	info := okapi.FromContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.getBacklog(ctx, info); b != nil {
		b.waits[w.AcquisitionID] = wait{w, cutText(info.RequestID, schemas.MaxHistoryText), cutText(info.Machine, schemas.MaxMachineName)}
	}
}

// WaitEnded forgets a wait. Its beginning may have found no room.
func (r *Recorder) WaitEnded(ctx context.Context, w checkout.Wait) {
	info := okapi.FromContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.getBacklog(ctx, info); b != nil {
		delete(b.waits, w.AcquisitionID)
	}
}

// getBacklog returns the backlog of the tenant in ctx, for which info is the newest
// call; nil if there is no room for another tenant. r.mu is held.
func (r *Recorder) getBacklog(ctx context.Context, info okapi.Call) *backlog {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return nil
	}
	b, known := r.tenants[id]
	if !known {
		if len(r.tenants) >= maxTenants {
			return nil
		}
		b = newBacklog()
		r.tenants[id] = b
	}
	b.newest = info
	return b
}

// Run sends reports until ctx is done, then the remaining ones, for at most 2 s. It
// returns when the last one has ended.
func (r *Recorder) Run(ctx context.Context) {
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for range pace.Every(ctx, interval, interval) {
		r.sendDue(sctx, false)
	}
	giveUp := time.AfterFunc(flushTimeout, cancel)
	defer giveUp.Stop()
	r.sending.Wait()
	r.sendDue(sctx, true)
	r.sending.Wait()
	if n := r.countEndings(); n > 0 {
		r.dropped(n)
		r.log.WarnContext(ctx, "finished check-outs were not reported before the stop", "check_outs", n)
	}
}

// countEndings counts the check-outs that are not reported.
func (r *Recorder) countEndings() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.tenants {
		n += len(b.endings)
	}
	return n
}

// describeEnding returns an ending as storage accepts it. A machine may send anything, and storage
// refuses a whole report for one bad entry.
func describeEnding(e checkout.Ending) schemas.PastCheckOut {
	past := schemas.PastCheckOut{
		Outcome:        e.Outcome,
		Code:           cutText(e.Code, schemas.MaxHistoryText),
		Reason:         cutText(e.Reason, schemas.MaxHistoryReason),
		UserBarcode:    cutText(e.UserBarcode, schemas.MaxHistoryText),
		ItemBarcode:    cutText(e.ItemBarcode, schemas.MaxHistoryText),
		UserID:         library.KeepUUID(e.UserID),
		LoanID:         library.KeepUUID(e.LoanID),
		ServicePointID: library.KeepUUID(e.ServicePointID),
		TookMs:         milliseconds(e.Took),
		Repeats:        e.Repeats,
	}
	if e.Wait != nil {
		past.WaitMs = new(milliseconds(*e.Wait))
	}
	return past
}

// cutText cuts a text to a number of characters, and removes what PostgreSQL cannot keep. It
// copies the beginning of a cut text, so that a barcode of a megabyte does not stay in memory.
func cutText(s string, most int) string {
	s, length := redact.Cut(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""), most)
	if length > 0 {
		return strings.Clone(s)
	}
	return s
}

// milliseconds rounds to the nearest one, up to the most that storage accepts.
func milliseconds(d time.Duration) int {
	return int(min(schemas.MaxHistoryMs, math.Round(d.Seconds()*1000)))
}
