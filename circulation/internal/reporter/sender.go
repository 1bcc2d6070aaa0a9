package reporter

import (
	"context"
	"sync"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// maxAtOnce bounds the reports that are under way.
	maxAtOnce = 4
	// sendTimeout bounds one report.
	sendTimeout = 5 * time.Second
)

// sender sends a recorder's reports.
type sender struct {
	recorder *Recorder
	sending  sync.WaitGroup
	slots    chan struct{}
}

// sendDue starts to send the reports of all tenants that are due, and drops idle ones. During a
// pause a tenant is due only if the caller ignores pauses.
func (s *sender) sendDue(ctx context.Context, ignorePauses bool) {
	now, r := time.Now(), s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, b := range r.tenants {
		switch {
		case b.isIdle():
			delete(r.tenants, id)
		case !b.sending && b.isDue(now) && (ignorePauses || !now.Before(b.pauseEnds)):
			b.sending, b.batch = true, schemas.MaxHistoryBatch
			s.sending.Go(func() { s.sendReports(ctx, b) })
		}
	}
}

// sendReports sends reports until storage has them all, or accepts no more.
func (s *sender) sendReports(ctx context.Context, b *backlog) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
	}
	more := true
	for more {
		more = s.sendReport(ctx, b)
	}
}

// sendReport sends one report and returns whether another one must follow at once. If not, b is
// no longer sending.
func (s *sender) sendReport(ctx context.Context, b *backlog) (more bool) {
	r := s.recorder
	r.mu.Lock()
	now := time.Now()
	dropped := b.removeOutdated(now)
	next := b.makeReport(now)
	ctx = okapi.NewContext(ctx, b.newest)
	r.mu.Unlock()

	rctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := r.storage.Report(rctx, next.content)

	r.mu.Lock()
	more, refused := b.noteAnswer(next, err)
	more = more && ctx.Err() == nil
	b.sending = more
	r.mu.Unlock()
	if dropped += refused; dropped > 0 {
		r.dropped(dropped)
	}
	if err != nil {
		r.logFailure(ctx, refused, err)
	}
	return more
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
