package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/schemas/fault"
)

// Failures logs how the repeated work of a process fails. An outage fails each round of
// it, so only the first failure of a kind of work is a warning.
type Failures struct {
	log *slog.Logger

	mu      sync.Mutex
	failing map[string]bool // by what is done
}

// NewFailures returns Failures without any.
func NewFailures(log *slog.Logger) *Failures {
	return &Failures{log: log, failing: map[string]bool{}}
}

// Try runs a round of the work what with a time-out, and reports whether it succeeded. The end of
// ctx is no failure. The caller has few kinds of work, because Failures forgets none.
func (f *Failures) Try(ctx context.Context, timeout time.Duration, what string, work func(context.Context) error) bool {
	round, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := work(round)
	if ctx.Err() == nil {
		f.note(ctx, what, err)
	}
	return err == nil
}

// LevelOf is the level of a failed call's line. An outage has one line for all calls, a lost lease too, and a
// caller that left has none.
func LevelOf(err error, countRefusal func() bool) slog.Level {
	if errors.Is(err, context.Canceled) || fault.Is(err, fault.Unavailable) && (countRefusal() || errors.Is(err, errNoLease)) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// note logs the first failure after a success as a warning, and its repeats for debug. The next
// success is one line.
func (f *Failures) note(ctx context.Context, what string, err error) {
	f.mu.Lock()
	before := f.failing[what]
	f.failing[what] = err != nil
	f.mu.Unlock()
	switch {
	case err != nil && before:
		f.log.DebugContext(ctx, what+" failed again", "err", err)
	case err != nil:
		f.log.WarnContext(ctx, what+" failed and is tried again", "err", err)
	case before:
		f.log.InfoContext(ctx, what+" succeeds again")
	}
}
