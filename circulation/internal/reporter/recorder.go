// Package reporter reports finished check-outs, and how many wait for a patron's
// lock, to storage asynchronously. It keeps reports in memory and sends them in
// batches, so no check-out waits. A process that dies loses what it has not sent.
package reporter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// interval is how often the recorder looks whether there is something to tell.
	interval = 500 * time.Millisecond
	// waitingInterval is how often it repeats that check-outs wait. Storage believes
	// it for 5 s.
	waitingInterval = time.Second
	// maxEntries bounds the check-outs that are kept of one tenant, and maxTenants the
	// tenants: an outage of storage must not fill the memory. Tenants that are many
	// share maxShared, so that some five times as many are kept at worst, when they
	// come one after the other; an entry has 1 to 3 KB.
	maxEntries = 1000
	maxTenants = 1000
	maxShared  = 20_000
	// flushTimeout bounds the last telling, at the stop.
	flushTimeout = 2 * time.Second
	// logEvery is how often the log repeats that storage does not listen.
	logEvery = 10 * time.Second
)

// Storage keeps the history of the tenant in ctx.
type Storage interface {
	// Report keeps what one instance tells; a check-out that it told before is kept
	// once. Faults that mean that it will never take this report: Invalid, Malformed,
	// UnknownTenant, TooLarge.
	Report(ctx context.Context, report schemas.CheckOutReport) error
}

// Recorder tells storage what it observes. It is safe for concurrent use.
type Recorder struct {
	checkout.NoObserver // for what the history does not keep
	storage             Storage
	dropped             func(n int)
	log                 *slog.Logger

	mu      sync.Mutex
	tenants map[okapi.Tenant]*backlog
	logged  time.Time // when the log was last told of a failure
}

var _ checkout.Observer = (*Recorder)(nil)

// NewRecorder returns a recorder, which tells nothing before Run. dropped is told
// of check-outs that the history will miss.
func NewRecorder(storage Storage, dropped func(n int), log *slog.Logger) *Recorder {
	return &Recorder{storage: storage, dropped: dropped, log: log, tenants: map[okapi.Tenant]*backlog{}}
}

// Ended implements checkout.Observer.
func (r *Recorder) Ended(ctx context.Context, e checkout.Ending) {
	info, now := okapi.FromContext(ctx), time.Now()
	past := describe(e)
	past.ID, past.RequestID = uuid.NewString(), fit(info.RequestID, schemas.MaxHistoryText)
	if n := r.add(ctx, info, entry{past: past, ended: now}); n > 0 {
		r.dropped(n)
	}
}

// add returns how many check-outs had to be dropped for it, this one or older ones.
func (r *Recorder) add(ctx context.Context, info okapi.Call, e entry) (dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.of(ctx, info)
	if b == nil {
		return 1
	}
	most := min(maxEntries, maxShared/len(r.tenants))
	dropped = max(0, len(b.entries)+1-most)
	b.forget(dropped)
	b.entries = append(b.entries, e)
	return dropped
}

// Waiting implements checkout.Observer.
func (r *Recorder) Waiting(ctx context.Context, delta int) {
	info := okapi.FromContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.of(ctx, info); b != nil {
		// Not below 0: the beginning may have found no room.
		b.waiting = max(0, b.waiting+delta)
	}
}

// of returns what there is to tell of the tenant in ctx, which info is the newest
// call for; nil when there is no room for one more. r.mu is held.
func (r *Recorder) of(ctx context.Context, info okapi.Call) *backlog {
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

// Run tells storage until ctx is done, then what is left, for at most 2 s. It
// returns when all that is over.
func (r *Recorder) Run(ctx context.Context) {
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &sender{Recorder: r, slots: make(chan struct{}, maxAtOnce)}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			s.tellDue(sctx)
		case <-ctx.Done():
		}
	}
	giveUp := time.AfterFunc(flushTimeout, cancel)
	defer giveUp.Stop()
	s.running.Wait()
	s.tellAll(sctx)
	s.running.Wait()
	if n := r.left(); n > 0 {
		r.dropped(n)
		r.log.WarnContext(ctx, "storage was not told how check-outs ended before the stop", "check_outs", n)
	}
}

// left counts the check-outs that are not told.
func (r *Recorder) left() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.tenants {
		n += len(b.entries)
	}
	return n
}
