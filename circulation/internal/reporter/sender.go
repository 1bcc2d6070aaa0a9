package reporter

import (
	"context"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// maxAtOnce bounds the reports that are under way.
	maxAtOnce = 4
	// sendTimeout bounds one report.
	sendTimeout = 5 * time.Second
)

// sendDue starts to send the reports of all tenants that are due, and drops idle ones. During a
// pause a tenant is due only if the caller ignores pauses.
func (r *Recorder) sendDue(ctx context.Context, ignorePauses bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, b := range r.tenants {
		switch {
		case b.isIdle():
			delete(r.tenants, id)
		case !b.sending && b.isDue(now) && (ignorePauses || !now.Before(b.pauseEnds)):
			b.sending, b.batch = true, schemas.MaxHistoryBatch
			r.sending.Go(func() { r.sendReports(ctx, b) })
		}
	}
}

// sendReports sends reports until storage has them all, or accepts no more.
func (r *Recorder) sendReports(ctx context.Context, b *backlog) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
	}
	for r.sendReport(ctx, b) {
	}
}

// sendReport sends one report and returns whether another one must follow at once. If not, b is
// no longer sending.
func (r *Recorder) sendReport(ctx context.Context, b *backlog) (more bool) {
	next, call, dropped := r.takeReport(b)
	ctx = okapi.NewContext(ctx, call)
	err := r.tryReport(ctx, next)
	more, refused := r.noteAnswer(ctx, b, next, err)
	if dropped += refused; dropped > 0 {
		r.dropped(dropped)
	}
	if err != nil && !fault.Is(err, fault.UnknownTenant) {
		r.logFailure(ctx, refused, err)
	}
	return more
}

// takeReport makes the next report of a backlog, for the newest call. It drops what is too old.
func (r *Recorder) takeReport(b *backlog) (next report, call okapi.Call, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	dropped = b.removeOutdated(now)
	return b.makeReport(now, r.version), b.newest, dropped
}

// tryReport sends a report. A panic is an error too, after which it is sent again.
func (r *Recorder) tryReport(ctx context.Context, next report) (err error) {
	defer fault.Recover(&err)
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return r.storage.Report(ctx, next.content)
}

// noteAnswer is backlog.noteAnswer. No report follows once ctx is done.
func (r *Recorder) noteAnswer(ctx context.Context, b *backlog, sent report, err error) (more bool, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more, refused = b.noteAnswer(sent, err)
	b.sending = more && ctx.Err() == nil
	return b.sending, refused
}

// logFailure logs at most once in logEvery that storage did not accept a report.
func (r *Recorder) logFailure(ctx context.Context, refused int, err error) {
	r.mu.Lock()
	due := time.Since(r.logged) >= logEvery
	if due {
		r.logged = time.Now()
	}
	r.mu.Unlock()
	switch {
	case !due:
	case refused > 0:
		r.log.WarnContext(ctx, "storage refused a report of finished check-outs", "check_outs", refused, "err", err)
	default:
		r.log.WarnContext(ctx, "a report of finished check-outs did not reach storage", "err", err)
	}
}
