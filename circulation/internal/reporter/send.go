package reporter

import (
	"context"
	"sync"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	// maxAtOnce bounds the reports that are under way.
	maxAtOnce = 4
	// sendTimeout bounds one report.
	sendTimeout = 5 * time.Second
)

// sender is a recorder that tells.
type sender struct {
	*Recorder
	running sync.WaitGroup
	slots   chan struct{}
}

// tellDue begins to tell of every tenant that there is something new of.
func (s *sender) tellDue(ctx context.Context) {
	now := time.Now()
	s.each(ctx, func(b *backlog) bool { return b.news(now) && !now.Before(b.pause) })
}

// tellAll is tellDue without regard to pauses.
func (s *sender) tellAll(ctx context.Context) {
	now := time.Now()
	s.each(ctx, func(b *backlog) bool { return b.news(now) })
}

func (s *sender) each(ctx context.Context, due func(*backlog) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, b := range s.tenants {
		switch {
		case b.idle():
			delete(s.tenants, id)
		case !b.running && due(b):
			b.running, b.batch = true, schemas.MaxHistoryBatch
			s.running.Go(func() { s.tell(ctx, b) })
		}
	}
}

// tell sends reports until storage knows all there was, or takes no more.
func (s *sender) tell(ctx context.Context, b *backlog) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
	}
	for more := true; more; {
		more = s.tellOnce(ctx, b)
	}
}

// tellOnce sends one report and reports whether another one has to follow at once;
// if not, b is no longer running.
func (s *sender) tellOnce(ctx context.Context, b *backlog) (more bool) {
	s.mu.Lock()
	now := time.Now()
	lost := b.forgetOld(now)
	r := b.report(now)
	ctx = b.context(ctx)
	s.mu.Unlock()

	rctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := s.storage.Report(rctx, r.CheckOutReport)

	s.mu.Lock()
	more, refused := b.heard(r, err)
	more = more && ctx.Err() == nil
	b.running = more
	s.mu.Unlock()
	if lost += refused; lost > 0 {
		s.dropped(lost)
	}
	if err != nil {
		s.complain(ctx, refused, err)
	}
	return more
}

// heard notes how storage took a report. It returns whether another one has to
// follow at once, and how many check-outs were given up because storage will never
// take them.
func (b *backlog) heard(r report, err error) (more bool, refused int) {
	switch {
	case err == nil:
		b.forgetUntil(r.until)
	case fault.Is(err, fault.TooLarge) && len(r.CheckOuts) > 1:
		b.batch = len(r.CheckOuts) / 2
		return true, 0
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Malformed), fault.Is(err, fault.UnknownTenant), fault.Is(err, fault.TooLarge):
		refused = b.forgetUntil(r.until)
	default:
		b.pause = time.Now().Add(b.pauses.NextBackOff())
		return false, 0
	}
	// A figure that was refused counts as told too: the next one is told when it is
	// another, or time for it.
	b.told, b.toldAt = r.Waiting, r.made
	b.pauses.Reset()
	b.batch = min(2*b.batch, schemas.MaxHistoryBatch)
	return r.rest, refused
}

// complain says in the log that storage did not take a report, now and then.
func (s *sender) complain(ctx context.Context, refused int, err error) {
	s.mu.Lock()
	due := time.Since(s.logged) >= logEvery
	if due {
		s.logged = time.Now()
	}
	s.mu.Unlock()
	switch {
	case !due:
	case refused > 0:
		s.log.WarnContext(ctx, "storage refused to keep how check-outs ended", "check_outs", refused, "err", err)
	default:
		s.log.WarnContext(ctx, "storage could not be told how check-outs ended", "err", err)
	}
}
